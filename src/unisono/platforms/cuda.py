"""NVIDIA GPUs over NCCL."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from unisono.job.capabilities import Capabilities
from unisono.platforms.base import device_index


class CudaPlatform:
    """One GPU a process."""

    name = "cuda"
    backend = "nccl"
    simulated = False

    @property
    def capabilities(self) -> Capabilities:
        """bf16 needs compute capability 8.0; the rest is common to all supported GPUs."""
        return Capabilities(
            fp16=True,
            bf16=self.device_count() > 0 and torch.cuda.get_device_capability()[0] >= 8,
            overflow="inf_nan",
            channels_last=True,
            pinned_memory=True,
            torch_fused_optimizers=True,
            reads_are_free=False,
            worker_start_method="forkserver",
        )

    def device_count(self) -> int:
        """GPUs visible to this process."""
        return torch.cuda.device_count()

    def activate(self, local_rank: int, local_world_size: int) -> torch.device:
        """TF32 stays off and cuDNN deterministic: the same recipe must give the same bits each time."""
        index = device_index(local_rank, self.device_count(), self.name)
        torch.cuda.set_device(index)
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        return torch.device("cuda", index)

    def synchronize(self) -> None:
        """Wait for the current GPU."""
        torch.cuda.synchronize()

    def seed(self, seed: int) -> None:
        """Seed the current GPU's generator."""
        torch.cuda.default_generators[torch.cuda.current_device()].manual_seed(seed)

    def take_overflow(self) -> bool:
        """False: an overflow is an infinity here."""
        return False

    def fused_optimizers(self) -> Mapping[str, type[torch.optim.Optimizer]]:
        """None: torch's fused kernels serve."""
        return {}

    def describe(self) -> dict[str, Any]:
        """Name, memory and peak use in bytes, CUDA, cuDNN and NCCL versions."""
        properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        return {
            "device": properties.name,
            "memory_bytes": properties.total_memory,
            "peak_memory_bytes": torch.cuda.max_memory_allocated(),
            "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(),
            "nccl": ".".join(str(part) for part in torch.cuda.nccl.version()),
        }
