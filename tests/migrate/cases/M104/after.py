import argparse

import torch
import torch_npu

device = "npu"  #: M104
first = torch.device("npu:0")  #: M104
second = torch.device('npu', 1)  #: M104
run_on = "npu"  #: M104
x = torch.zeros(3, device="npu:1", dtype=torch.float32)  #: M104
y = x.to("npu", non_blocking=True)  #: M104
generator = torch.Generator("npu")  #: M104
z = x.to(run_on)
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="npu", help="cuda or cpu")  #: M104


def build(model, device="npu"):  #: M104
    return model.to(device)


class Config:
    device: str = "npu"  #: M104


def pick_device():
    return "npu"  #: M104


torch.set_default_device("npu")  #: M104
chosen = getattr(parser, "device", "npu")  #: M104
