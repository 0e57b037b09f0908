"""Version of the torch_npu that is stood in for: that of torch."""

import torch

__version__ = torch.__version__.split("+")[0]
git_version = "simulated"
