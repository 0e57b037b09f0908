import torch
from apex import amp  #: M510


def main(model, optimizer, args):
    model = model.cuda()  #: M102
    model, optimizer = amp.initialize(  #: M501
        model, optimizer, opt_level=args.opt_level, loss_scale=128.0
    )
    return model, optimizer


def one(generator, critic, optimizers):
    return amp.initialize([generator, critic], optimizers, num_losses=2)  #: M501
