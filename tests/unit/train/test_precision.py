"""Autocast by name, and the loss scale as two numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from unisono.recipe.schema import PrecisionRecipe, precision_from_apex_level
from unisono.train.precision import LossScaler, Precision


def scaler(**recipe: Any) -> LossScaler:
    return LossScaler(PrecisionRecipe.model_validate({"compute": "fp16", **recipe}))


@pytest.mark.parametrize(
    ("compute", "expected"), [("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)]
)
def test_matrix_products_have_the_recipes_type_and_weights_stay_fp32(compute: str, expected: torch.dtype) -> None:
    layer = torch.nn.Linear(4, 4)
    with Precision(PrecisionRecipe.model_validate({"compute": compute}), "cpu").autocast():
        assert layer(torch.zeros(2, 4)).dtype is expected
    assert layer.weight.dtype is torch.float32
    assert layer(torch.zeros(2, 4)).dtype is torch.float32


def test_a_dynamic_scale_halves_at_overflow_and_doubles_after_the_interval() -> None:
    found = scaler(initial_loss_scale=1024.0, loss_scale_growth_interval=3)
    scales = []
    for overflow in (True, False, False, False, False, True, False, False, False):
        found.update(overflow=overflow)
        scales.append(found.scale)
    assert scales == [512, 512, 512, 1024, 1024, 512, 512, 512, 1024]


def test_a_static_scale_never_moves() -> None:
    found = scaler(loss_scale=1024.0, loss_scale_growth_interval=1)
    for overflow in (True, False, False):
        found.update(overflow=overflow)
    assert (found.enabled, found.scale) == (True, 1024.0)


@pytest.mark.parametrize("compute", ["fp32", "bf16"])
def test_only_fp16_scales(compute: str) -> None:
    found = LossScaler(PrecisionRecipe.model_validate({"compute": compute, "loss_scale": 1024.0}))
    found.update(overflow=True)
    assert (found.enabled, found.scale) == (False, 1.0)


def test_the_state_continues_where_it_was_saved() -> None:
    first = scaler(initial_loss_scale=8.0, loss_scale_growth_interval=3)
    first.update(overflow=True)
    first.update(overflow=False)
    first.update(overflow=False)
    second = scaler(initial_loss_scale=8.0, loss_scale_growth_interval=3)
    second.load_state(first.state())
    for each in (first, second):
        each.update(overflow=False)
    assert first.scale == second.scale == 8.0
    assert {type(value) for value in first.state().values()} <= {int, float}


def test_apex_levels_have_the_model_zoos_meaning() -> None:
    assert precision_from_apex_level("O0").compute == "fp32"
    assert precision_from_apex_level("O1").loss_scale == "dynamic"
    assert precision_from_apex_level("O2").loss_scale == 1024.0
    with pytest.raises(ValueError, match="O3"):
        precision_from_apex_level("O3")
