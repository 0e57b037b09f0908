"""Every optimizer of a recipe steps on a simulated NPU as on the CPU: weights, averages and optimizer state, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="the trainer's own libraries are not in this environment")
pytest.importorskip("timm.optim", exc_type=Exception, reason="timm needs a torchvision that fits torch")

from helpers.training import train
from helpers.variations import VARIATIONS

from unisono.platforms.cpu import CpuPlatform
from unisono.platforms.npu import NpuPlatform

CHANGES: dict[str, dict[str, Any]] = {
    "sgd": {"model.name": "mlp", "train_for": "3 steps"},
    "sgd, nesterov, fp16, norms without decay": {
        "optimizer.nesterov": True,
        "optimizer.weight_decay_on_norms_and_biases": False,
        "precision.compute": "fp16",
        "train_for": "3 steps",
    },
    **{name: VARIATIONS[name] for name in ("rmsprop", "adamw", "lars", "lamb")},
}


@pytest.mark.parametrize("name", CHANGES)
def test_an_optimizer_comes_to_the_cpus_bytes(name: str, tmp_path: Path) -> None:
    on_cpu, on_npu = (
        train(0, 1, str(tmp_path / platform.name), CHANGES[name], platform=platform)
        for platform in (CpuPlatform(), NpuPlatform())
    )
    assert on_npu["digest"] == on_cpu["digest"]
    assert on_npu["evaluation"] == on_cpu["evaluation"]
    assert (on_cpu["simulated"], on_npu["simulated"]) == (False, True)


def test_the_recipes_names_are_the_fused_optimizers_of_torch_npu() -> None:
    import torch_npu

    fused = NpuPlatform().fused_optimizers()
    assert {name: kind.__name__ for name, kind in fused.items()} == {
        "sgd": "NpuFusedSGD",
        "rmsprop": "NpuFusedRMSprop",
        "adamw": "NpuFusedAdamW",
    }
    assert all(issubclass(kind, torch_npu.optim.npu_fused_optim_base.FusedRules) for kind in fused.values())
