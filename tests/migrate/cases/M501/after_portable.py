import torch
from apex import amp  #: M510

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
grad_scaler = torch.amp.GradScaler(ACCELERATOR, enabled=False)


def main(model, optimizer, args):
    model = model.to(ACCELERATOR)  #: M102
    global grad_scaler
    grad_scaler = torch.amp.GradScaler(ACCELERATOR, init_scale=128.0, growth_interval=2**30, enabled=args.opt_level != "O0")
    return model, optimizer


def one(generator, critic, optimizers):
    return amp.initialize([generator, critic], optimizers, num_losses=2)  #: M501
