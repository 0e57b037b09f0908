"""torch_npu's fused optimizers: the same mathematics, element by element as torch's plain optimizers compute it."""

from torch_npu._missing import missing_names
from torch_npu.optim import (
    npu_fused_adadelta,
    npu_fused_adam,
    npu_fused_adamp,
    npu_fused_adamw,
    npu_fused_bert_adam,
    npu_fused_lamb,
    npu_fused_optim_base,
    npu_fused_rmsprop,
    npu_fused_rmsprop_tf,
    npu_fused_sgd,
)
from torch_npu.optim.npu_fused_adadelta import NpuFusedAdadelta
from torch_npu.optim.npu_fused_adam import NpuFusedAdam
from torch_npu.optim.npu_fused_adamp import NpuFusedAdamP
from torch_npu.optim.npu_fused_adamw import NpuFusedAdamW
from torch_npu.optim.npu_fused_bert_adam import NpuFusedBertAdam
from torch_npu.optim.npu_fused_lamb import NpuFusedLamb
from torch_npu.optim.npu_fused_optim_base import NpuFusedOptimizerBase
from torch_npu.optim.npu_fused_rmsprop import NpuFusedRMSprop
from torch_npu.optim.npu_fused_rmsprop_tf import NpuFusedRMSpropTF
from torch_npu.optim.npu_fused_sgd import NpuFusedSGD

__all__ = [
    "NpuFusedAdadelta", "NpuFusedAdam", "NpuFusedAdamP", "NpuFusedAdamW", "NpuFusedBertAdam", "NpuFusedLamb",
    "NpuFusedOptimizerBase", "NpuFusedRMSprop", "NpuFusedRMSpropTF", "NpuFusedSGD", "npu_fused_adadelta", "npu_fused_adam",
    "npu_fused_adamp", "npu_fused_adamw", "npu_fused_bert_adam", "npu_fused_lamb", "npu_fused_optim_base",
    "npu_fused_rmsprop", "npu_fused_rmsprop_tf", "npu_fused_sgd",
]  # fmt: skip
__getattr__ = missing_names(__name__)
