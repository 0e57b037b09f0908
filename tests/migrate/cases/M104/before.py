import argparse

import torch

device = "cuda"  #: M104
first = torch.device("cuda:0")  #: M104
second = torch.device('cuda', 1)  #: M104
run_on = "cuda"  #: M104
x = torch.zeros(3, device="cuda:1", dtype=torch.float32)  #: M104
y = x.to("cuda", non_blocking=True)  #: M104
generator = torch.Generator("cuda")  #: M104
z = x.to(run_on)
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda", help="cuda or cpu")  #: M104


def build(model, device="cuda"):  #: M104
    return model.to(device)


class Config:
    device: str = "cuda"  #: M104


def pick_device():
    return "cuda"  #: M104


torch.set_default_device("cuda")  #: M104
chosen = getattr(parser, "device", "cuda")  #: M104
