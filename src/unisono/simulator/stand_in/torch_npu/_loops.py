"""Which form of an optimizer torch takes by itself: on a simulated NPU the CPU's, a loop over the parameters."""

from __future__ import annotations

import sys

from torch.utils._foreach_utils import _get_foreach_kernels_supported_devices


def _without_npu() -> list[str]:
    return [device for device in _get_foreach_kernels_supported_devices() if device != "npu"]


def choose_as_on_the_cpu() -> None:
    """For accelerators torch and timm choose foreach kernels, whose norms (LAMB's) are summed in another order.

    foreach=True is still obeyed. Clipping of gradients takes foreach kernels on CPUs too, and is left alone.
    """
    for name in ("torch.optim.optimizer", "torch.optim.swa_utils"):  # torch.optim hides the first of the two
        setattr(sys.modules[name], _get_foreach_kernels_supported_devices.__name__, _without_npu)
