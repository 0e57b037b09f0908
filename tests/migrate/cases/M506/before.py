import torch
from apex.normalization import FusedLayerNorm  #: M510

norm = FusedLayerNorm(16, eps=1e-6)  #: M506
