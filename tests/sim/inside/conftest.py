"""These tests run inside a process that simulates NPUs; tests/sim/test_inside.py starts it."""

from __future__ import annotations

import os

import pytest

if not os.environ.get("UNISONO_SIM_DEVICES"):
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)

    @pytest.fixture(autouse=True)
    def _current_device_0() -> None:
        torch.npu.set_device(0)
        torch.manual_seed(0)
