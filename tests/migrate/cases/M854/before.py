import torch
from torch import nn

layer = nn.EmbeddingBag(10, 3)  #: M854
