"""What a platform can do, as data. Differences between chips are fields here, never branches on names elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """The abilities of one kind of device that the plan and the trainer ask about."""

    fp16: bool
    """Trains in float16 under autocast."""
    bf16: bool
    """Trains in bfloat16 under autocast."""
    overflow: Literal["inf_nan", "saturate"]
    """What a float16 overflow leaves behind: infinity, or the largest number (then equal gradients are no proof of agreement)."""
    channels_last: bool
    """Convolutions gain from NHWC memory."""
    pinned_memory: bool
    """Copies from page-locked host memory run beside the device's work."""
    torch_fused_optimizers: bool
    """torch's own `fused=True` optimizer kernels run here."""
    reads_are_free: bool
    """The host may read a device scalar every step without emptying a queue of kernels."""
    worker_start_method: Literal["fork", "forkserver", "spawn"]
    """How loader processes start; a process that has touched an accelerator must not be forked."""
