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
        fused: the platform's own fused optimizers by recipe name; they take torch's arguments. Used where their rule
            is the recipe's.
        torch_fused: torch's `fused=True` kernels run on this platform.
    """
    built = _build(model, recipe, fused, torch_fused)
    built.register_load_state_dict_post_hook(_lay_out_like_parameters)
    return built


def _build(
    model: nn.Module, recipe: OptimizerRecipe, fused: Mapping[str, type[torch.optim.Optimizer]], torch_fused: bool
) -> torch.optim.Optimizer:
    groups, settings = parameter_groups(model, recipe), _settings(recipe)
    # torch_npu's fused LAMB corrects no bias and caps the weights' norm at 10: another rule under the same name.
    if recipe.name in fused and recipe.name != "lamb":
        built = fused[recipe.name](groups, **settings)
        _OwnGradients(built)
        return built
    # Without a fused kernel torch and timm take foreach kernels on accelerators and a loop over tensors on CPUs, where
    # foreach only adds temporaries. One step of resnet50_cifar on one thread of an AMD EPYC, loop / foreach / fused:
    # SGD 31 / 42 / 21 ms, AdamW 95 / 120 / 28 ms, RMSprop 95 / 183 ms, LARS 48 / 54 ms, LAMB 149 / 193 ms.
    if recipe.name == "rmsprop":
        return torch.optim.RMSprop(groups, **settings)
    if recipe.name in ("lars", "lamb"):
        from timm.optim import Lamb, Lars

        if recipe.name == "lars":
            return Lars(groups, **settings)  # type: ignore[no-any-return]  # timm is untyped
        # timm's LAMB would clip gradients to norm 1 unasked; the recipe's max_grad_norm is the only clipping.
        return Lamb(groups, max_grad_norm=None, **settings)  # type: ignore[no-any-return]  # timm is untyped
    kind = torch.optim.SGD if recipe.name == "sgd" else torch.optim.AdamW
    return kind(groups, fused=(torch_fused and _is_plain_memory(model)) or None, **settings)


def _is_plain_memory(model: nn.Module) -> bool:
    """Every weight lies in order, or in channels_last order: what the reduction gives gradients the strides of."""
    return all(
        p.is_contiguous() or (p.dim() == 4 and p.is_contiguous(memory_format=torch.channels_last))
        for p in model.parameters()
    )


def _lay_out_like_parameters(optimizer: torch.optim.Optimizer) -> None:
    # A checkpoint holds tensors in plain order. torch's fused kernels on CPUs walk raw memory, so state of other strides
    # than its weight's would be matched with the wrong elements, in silence (torch 2.14); and LAMB's norms would be
    # summed in another order, so a resumed run would drift from one that never stopped.
    for parameter, state in optimizer.state.items():
        for key, value in state.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                state[key] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


class _OwnGradients:
    """Lends a vendor's fused optimizer gradients with memory of their own, the same tensors at every step.

    At its first step such an optimizer joins all weights, and all gradients, into one block of memory each, and from
    then on reads that block alone. Our gradients are views into the reduction's buckets, set anew at every step: the
    block would keep the first step's, and joining would take the buckets away from the reduction. The price is one
    copy of the gradients a step. Source: torch_npu/optim/npu_fused_optim_base.py and utils/combine_tensors.py.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self._own: dict[torch.Tensor, torch.Tensor] = {}
        self._lent: list[tuple[torch.Tensor, torch.Tensor]] = []
        optimizer.register_step_pre_hook(self._lend)
        optimizer.register_step_post_hook(self._take_back)

    @torch.no_grad()
    def _lend(self, optimizer: torch.optim.Optimizer, *_: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        self._lent = [(p, p.grad) for p in parameters]
        for p in parameters:
            if p not in self._own:
                self._own[p] = torch.empty_like(p)
        own = [self._own[p] for p in parameters]
        torch._foreach_copy_(own, [gradient for _, gradient in self._lent])
        for p, gradient in zip(parameters, own, strict=True):
            p.grad = gradient

    def _take_back(self, *_: Any) -> None:
        for p, gradient in self._lent:
            p.grad = gradient
        self._lent = []


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
