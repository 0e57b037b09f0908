import argparse

import torch

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"

device = ACCELERATOR  #: M104
first = torch.device(f"{ACCELERATOR}:0")  #: M104
second = torch.device(ACCELERATOR, 1)  #: M104
run_on = ACCELERATOR  #: M104
x = torch.zeros(3, device=f"{ACCELERATOR}:1", dtype=torch.float32)  #: M104
y = x.to(ACCELERATOR, non_blocking=True)  #: M104
generator = torch.Generator(ACCELERATOR)  #: M104
z = x.to(run_on)
parser = argparse.ArgumentParser()
parser.add_argument("--device", default=ACCELERATOR, help="cuda or cpu")  #: M104


def build(model, device=ACCELERATOR):  #: M104
    return model.to(device)


class Config:
    device: str = ACCELERATOR  #: M104


def pick_device():
    return ACCELERATOR  #: M104


torch.set_default_device(ACCELERATOR)  #: M104
chosen = getattr(parser, "device", ACCELERATOR)  #: M104
