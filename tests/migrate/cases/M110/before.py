import helpers
import torch


class Batch:
    def __init__(self, images):
        self.images = images

    def cuda(self):  #: M110
        self.images = self.images.cuda()  #: M102
        return self

    def ready(self):
        return self.cuda()  #: M110


def run(args):
    batch = Batch(torch.ones(2))
    batch.cuda()  #: M110
    if args.cuda:
        helpers.cuda(batch)
