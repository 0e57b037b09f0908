import torch
import torch_npu
from apex import amp  #: M510

grad_scaler = torch.amp.GradScaler("npu", enabled=False)


def main(model, optimizer, args):
    model = model.npu()  #: M102
    global grad_scaler
    grad_scaler = torch.amp.GradScaler("npu", init_scale=128.0, growth_interval=2**30, enabled=args.opt_level != "O0")
    return model, optimizer


def one(generator, critic, optimizers):
    return amp.initialize([generator, critic], optimizers, num_losses=2)  #: M501
