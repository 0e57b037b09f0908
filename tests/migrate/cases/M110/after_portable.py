import helpers
import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


class Batch:
    def __init__(self, images):
        self.images = images

    def cuda(self):  #: M110
        self.images = self.images.to(ACCELERATOR)  #: M102
        return self

    def ready(self):
        return self.cuda()  #: M110


def run(args):
    batch = Batch(torch.ones(2))
    batch.cuda()  #: M110
    if args.cuda:
        helpers.cuda(batch)
