"""The import comes behind the first import of torch, once."""
from __future__ import annotations

import os

import torch
import torch.nn as nn

ACCELERATOR = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"


def put(x):
    return x.to(ACCELERATOR)  #: M104
