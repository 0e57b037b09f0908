"""Ascend NPUs over HCCL, through torch_npu; also the simulated ones, which answer to the same names."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import torch

from unisono.errors import UserError
from unisono.job.capabilities import Capabilities
from unisono.platforms.base import device_index

# Names of torch_npu.optim by recipe name. Its fused LARS does not exist; RMSprop is the torch form, as in the model zoo; its
# LAMB is another rule under the same name: it corrects no bias and caps the weights' norm at 10.
_FUSED = {"sgd": "NpuFusedSGD", "rmsprop": "NpuFusedRMSprop", "adamw": "NpuFusedAdamW"}


def _torch_npu() -> Any:
    """torch_npu, imported when it is first needed.

    Raises:
        UserError: P104 it is missing, or it does not import (CANN absent or not sourced).
    """
    try:
        import torch_npu
    except Exception as error:  # torch_npu raises OSError, ImportError or RuntimeError, by what CANN lacks
        raise UserError(
            "P104",
            "torch_npu does not import",
            str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__,
            "run `unisono doctor`; most often: source /usr/local/Ascend/ascend-toolkit/set_env.sh",
        ) from error
    return torch_npu


class NpuPlatform:
    """One NPU a process."""

    name = "npu"
    backend = "hccl"

    @property
    def simulated(self) -> bool:
        """True under `unisono simulate` and `--simulate`."""
        return bool(getattr(_torch_npu(), "is_simulated", False))

    @property
    def capabilities(self) -> Capabilities:
        """A 910A (chip name without a letter, or ending in A or ProA/ProB) saturates at fp16 overflow and has no bf16."""
        first_generation = self.device_count() > 0 and _is_first_generation(self._chip_name())
        saturates = (
            first_generation
            or os.environ.get("INF_NAN_MODE_FORCE_DISABLE") == "1"
            or os.environ.get("INF_NAN_MODE_ENABLE") == "0"
        )
        return Capabilities(
            fp16=True,
            bf16=not first_generation,
            overflow="saturate" if saturates else "inf_nan",
            channels_last=self.simulated,
            pinned_memory=not self.simulated,
            torch_fused_optimizers=False,
            reads_are_free=self.simulated,
            worker_start_method="forkserver",
        )

    def _chip_name(self) -> str:
        return str(_torch_npu().npu.get_device_name(0))

    def device_count(self) -> int:
        """NPUs visible to this process (ASCEND_RT_VISIBLE_DEVICES narrows it); 0 without torch_npu."""
        if importlib.util.find_spec("torch_npu") is None:
            return 0
        return int(_torch_npu().npu.device_count())

    def activate(self, local_rank: int, local_world_size: int) -> torch.device:
        """hf32 off (it would lower convolutions' precision unasked), binary kernels instead of compiling each shape."""
        npu = _torch_npu().npu
        index = device_index(local_rank, self.device_count(), self.name)
        npu.set_device(index)
        npu.set_compile_mode(jit_compile=False)
        npu.conv.allow_hf32 = False
        npu.matmul.allow_hf32 = False
        return torch.device("npu", index)

    def synchronize(self) -> None:
        """Wait for the current NPU."""
        _torch_npu().npu.synchronize()

    def seed(self, seed: int) -> None:
        """Seed the current NPU's generator."""
        _torch_npu().npu.manual_seed(seed)

    def take_overflow(self) -> bool:
        """The chip's overflow flag, which is cleared; a chip with infinities never sets it."""
        npu = _torch_npu().npu
        overflowed = bool(npu.get_npu_overflow_flag())
        npu.clear_npu_overflow_flag()
        return overflowed

    def fused_optimizers(self) -> Mapping[str, type[torch.optim.Optimizer]]:
        """torch_npu's fused optimizers, those that this version has."""
        optim = _torch_npu().optim
        return {name: getattr(optim, fused) for name, fused in _FUSED.items() if hasattr(optim, fused)}

    def describe(self) -> dict[str, Any]:
        """Chip, memory and peak use in bytes, versions of torch_npu and CANN."""
        torch_npu = _torch_npu()
        index = torch_npu.npu.current_device()
        return {
            "device": torch_npu.npu.get_device_name(index),
            "memory_bytes": torch_npu.npu.get_device_properties(index).total_memory,
            "peak_memory_bytes": torch_npu.npu.max_memory_allocated(index),
            "torch_npu": torch_npu.__version__,
            "cann": os.environ.get("ASCEND_TOOLKIT_HOME", "unknown"),
        }


def _is_first_generation(chip: str) -> bool:
    return chip.removeprefix("Ascend") in ("910", "910A", "910ProA", "910ProB", "910PremiumA")
