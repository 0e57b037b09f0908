"""Trains on cuda:0, with nccl. torch.cuda.synchronize() is called at the end."""
import argparse
import logging

import torch

# model.cuda() was here; device = "cuda"
parser = argparse.ArgumentParser(description="cuda")
parser.add_argument("--cuda", action="store_true", help="cuda")
parser.add_argument("--no-cuda", action="store_true", help='use "cuda" if given')
parser.add_argument("--gpu", type=int, help="GPU id, as in cuda:0")
args = parser.parse_args()


def report(loss):
    """Prints to a person; `x.cuda()` in a docstring stays."""
    print("cuda", "nccl", f"on cuda:{args.gpu} the loss is {loss}")
    logging.info("training with %s over nccl on cuda", "torch.cuda")
    if args.cuda and not args.no_cuda:
        raise RuntimeError("cuda is not there; see https://example.org/nccl")
