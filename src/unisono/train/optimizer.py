"""The update rule, in the fastest form that the platform has, with decay only where the recipe wants it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from unisono.recipe.schema import OptimizerRecipe


def build_optimizer(
    model: nn.Module,
    recipe: OptimizerRecipe,
    *,
    fused: Mapping[str, type[torch.optim.Optimizer]],
    torch_fused: bool,
) -> torch.optim.Optimizer:
    """The optimizer of a recipe over the model's parameters.

    Args:
        fused: the platform's own fused optimizers by recipe name.
        torch_fused: torch's `fused=True` kernels run on this platform; foreach ones are used where not.
    """
    groups = parameter_groups(model, recipe)
    settings = _settings(recipe)
    if recipe.name in fused:
        return fused[recipe.name](groups, **settings)
    if recipe.name in ("lars", "lamb"):
        from timm.optim import Lamb, Lars

        return (Lars if recipe.name == "lars" else Lamb)(groups, **settings)  # type: ignore[no-any-return]  # timm is untyped
    if recipe.name == "rmsprop":
        return torch.optim.RMSprop(groups, foreach=True, **settings)
    kind: Any = torch.optim.SGD if recipe.name == "sgd" else torch.optim.AdamW
    built: torch.optim.Optimizer = kind(groups, **({"fused": True} if torch_fused else {"foreach": True}), **settings)
    return built


def parameter_groups(model: nn.Module, recipe: OptimizerRecipe) -> list[dict[str, Any]]:
    """All parameters with decay, or norms and biases (one dimension or none) in a second group without."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    if recipe.weight_decay_on_norms_and_biases or recipe.weight_decay == 0:
        return [{"params": parameters, "weight_decay": recipe.weight_decay}]
    decayed = [p for p in parameters if p.dim() > 1]
    plain = [p for p in parameters if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": plain, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _settings(recipe: OptimizerRecipe) -> dict[str, Any]:
    common: dict[str, Any] = {"lr": recipe.learning_rate}
    if recipe.name == "sgd":
        return common | {"momentum": recipe.momentum, "nesterov": recipe.nesterov}
    if recipe.name == "rmsprop":
        return common | {"alpha": recipe.alpha, "eps": recipe.eps, "momentum": recipe.momentum}
    if recipe.name == "lars":
        return common | {
            "momentum": recipe.momentum,
            "nesterov": recipe.nesterov,
            "trust_coeff": recipe.trust_coefficient,
            "eps": recipe.eps,
        }
    return common | {"betas": recipe.betas, "eps": recipe.eps}
