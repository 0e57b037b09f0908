"""Optimizers: the published update rules, decay where the recipe wants it, state that survives a checkpoint."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from unisono.platforms.cpu import CpuPlatform
from unisono.recipe.schema import OptimizerRecipe
from unisono.train.optimizer import build_optimizer, parameter_groups

NAMES = ("sgd", "rmsprop", "adamw", "lars", "lamb")


def model() -> nn.Sequential:
    torch.manual_seed(0)
    built = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(8 * 4 * 4, 5))
    return built.to(memory_format=torch.channels_last)


def recipe(name: str, **changes: Any) -> OptimizerRecipe:
    return OptimizerRecipe.model_validate(
        {"name": name, "learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01, "eps": 0.01, **changes}
    )


def give_gradients(net: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for p in net.parameters():
        p.grad = torch.empty_like(p).copy_(torch.randn(p.shape, generator=generator))


def train(net: nn.Module, optimizer: torch.optim.Optimizer, first: int, last: int) -> None:
    for step in range(first, last):
        give_gradients(net, step)
        optimizer.step()


def weights(net: nn.Module) -> torch.Tensor:
    return torch.cat([p.detach().contiguous().flatten() for p in net.parameters()])


def build(net: nn.Module, settings: OptimizerRecipe, *, torch_fused: bool = True) -> torch.optim.Optimizer:
    return build_optimizer(net, settings, fused={}, torch_fused=torch_fused)


def sgd(p: torch.Tensor, g: torch.Tensor, state: dict[str, torch.Tensor], r: OptimizerRecipe, first: bool) -> None:
    g = g + r.weight_decay * p
    state["v"] = g.clone() if first else r.momentum * state["v"] + g
    p -= r.learning_rate * state["v"]


def rmsprop(p: torch.Tensor, g: torch.Tensor, state: dict[str, torch.Tensor], r: OptimizerRecipe, first: bool) -> None:
    g = g + r.weight_decay * p
    state["s"] = (1 - r.alpha) * g**2 if first else r.alpha * state["s"] + (1 - r.alpha) * g**2
    push = g / (state["s"].sqrt() + r.eps)
    state["v"] = push if first else r.momentum * state["v"] + push
    p -= r.learning_rate * state["v"]


@pytest.mark.parametrize(("name", "rule"), [("sgd", sgd), ("rmsprop", rmsprop)])
@pytest.mark.parametrize("torch_fused", [True, False])
def test_updates_follow_the_rule_of_the_recipe(name: str, rule: Callable[..., None], torch_fused: bool) -> None:
    net, settings = model(), recipe(name)
    expected = [p.detach().double().clone() for p in net.parameters()]
    state: list[dict[str, torch.Tensor]] = [{} for _ in expected]
    optimizer = build(net, settings, torch_fused=torch_fused)
    for step in range(4):
        give_gradients(net, step)
        for p, mine, own in zip(net.parameters(), expected, state, strict=True):
            rule(mine, p.grad.double(), own, settings, step == 0)
        optimizer.step()
    for p, mine in zip(net.parameters(), expected, strict=True):
        torch.testing.assert_close(p.detach().double(), mine, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("torch_fused", [True, False])
def test_a_resumed_optimizer_moves_weights_exactly_as_one_that_never_stopped(name: str, torch_fused: bool) -> None:
    straight, settings = model(), recipe(name)
    train(straight, build(straight, settings, torch_fused=torch_fused), 0, 6)

    stopped = model()
    optimizer = build(stopped, settings, torch_fused=torch_fused)
    train(stopped, optimizer, 0, 3)
    file = io.BytesIO()
    # A checkpoint holds every tensor in plain order, and opens without running code.
    torch.save({"optimizer": plain(optimizer.state_dict()), "model": plain(stopped.state_dict())}, file)
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    resumed = model()
    resumed.load_state_dict(saved["model"])
    optimizer = build(resumed, settings, torch_fused=torch_fused)
    optimizer.load_state_dict(saved["optimizer"])
    train(resumed, optimizer, 3, 6)
    assert torch.equal(weights(resumed), weights(straight))


def plain(tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        return tree.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [plain(value) for value in tree]
    return tree


def test_fused_kernels_are_not_used_on_weights_of_odd_strides() -> None:
    net = nn.Linear(3, 4)
    net.weight = nn.Parameter(torch.randn(3, 4).t())
    optimizer = build(net, recipe("sgd"))
    expected = net.weight.detach() - 0.05 * (torch.ones(4, 3) + 0.01 * net.weight.detach())
    net.weight.grad, net.bias.grad = torch.ones(4, 3), torch.ones(4)
    optimizer.step()
    torch.testing.assert_close(net.weight.detach(), expected)


@pytest.mark.parametrize("name", NAMES)
def test_the_state_holds_tensors_and_plain_types_only(name: str) -> None:
    net = model()
    optimizer = build(net, recipe(name))
    train(net, optimizer, 0, 2)

    def leaves(tree: Any) -> list[Any]:
        if isinstance(tree, dict):
            return [leaf for value in tree.values() for leaf in leaves(value)]
        if isinstance(tree, (list, tuple)):
            return [leaf for value in tree for leaf in leaves(value)]
        return [tree]

    kinds = {type(leaf) for leaf in leaves(optimizer.state_dict())}
    assert kinds <= {torch.Tensor, int, float, bool, str, type(None)}


@pytest.mark.parametrize("name", NAMES)
def test_decay_spares_norms_and_biases_where_the_recipe_says_so(name: str) -> None:
    groups = parameter_groups(model(), recipe(name, weight_decay_on_norms_and_biases=False))
    assert [group["weight_decay"] for group in groups] == [0.01, 0.0]
    assert {p.dim() for p in groups[0]["params"]} == {2, 4}
    assert {p.dim() for p in groups[1]["params"]} == {1}
    net = model()
    optimizer = build(net, recipe(name, weight_decay_on_norms_and_biases=False))
    bias, kernel = net[0].bias.detach().clone(), net[0].weight.detach().clone()
    for p in net.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    assert torch.equal(net[0].bias, bias)
    assert not torch.equal(net[0].weight, kernel)


def test_every_parameter_is_in_one_group_and_frozen_ones_in_none() -> None:
    net = model()
    net[0].bias.requires_grad_(False)
    for settings in (
        recipe("sgd"),
        recipe("sgd", weight_decay_on_norms_and_biases=False),
        recipe("sgd", weight_decay=0),
    ):
        members = [id(p) for group in parameter_groups(net, settings) for p in group["params"]]
        assert sorted(members) == sorted(id(p) for p in net.parameters() if p.requires_grad)


def test_lamb_clips_nothing_that_the_recipe_does_not_ask_to_clip() -> None:
    small, large = model(), model()
    for net, scale in ((small, 1.0), (large, 1000.0)):
        optimizer = build(net, recipe("lamb", weight_decay=0.0, eps=1e-12))
        for step in range(3):
            give_gradients(net, step)
            for p in net.parameters():
                assert p.grad is not None
                # One large gradient among small ones: clipping would shrink this step and not the others.
                p.grad *= scale if step == 1 else 1.0
            optimizer.step()
    assert not torch.allclose(weights(small), weights(large), rtol=1e-3)


def test_a_platforms_own_fused_optimizer_is_taken_with_torchs_arguments() -> None:
    class NpuFusedRMSprop(torch.optim.RMSprop):
        pass

    optimizer = build_optimizer(model(), recipe("rmsprop"), fused={"rmsprop": NpuFusedRMSprop}, torch_fused=False)
    assert type(optimizer) is NpuFusedRMSprop
    group = optimizer.param_groups[0]
    assert (group["alpha"], group["eps"], group["momentum"], group["weight_decay"]) == (0.9, 0.01, 0.9, 0.01)


class JoiningSGD(torch.optim.SGD):
    """Plain SGD that keeps its memory as torch_npu's fused optimizers do: joined at the first step, and read there alone."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:
        parameters = [p for group in self.param_groups for p in group["params"]]
        if not hasattr(self, "joined"):
            gradients = [p.grad for p in parameters]
            self.joined = [join(parameters), join(gradients)]
        weights, slopes = self.joined
        assert weights.shape == slopes.shape, "a gradient shares memory with others"
        weights.add_(slopes, alpha=-self.param_groups[0]["lr"])


def join(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Move tensors into one block, each with the whole storage it lies in, and point them there."""
    block = torch.zeros(sum(t.untyped_storage().size() // 4 for t in tensors))
    first = 0
    for t in tensors:
        values, strides, size = t.detach().clone(), t.stride(), t.untyped_storage().size() // 4
        t.data = block.as_strided(t.shape, strides, first)
        t.data.copy_(values)
        first += size
    return block


def test_a_fused_optimizer_that_joins_memory_follows_gradients_that_are_views_set_anew() -> None:
    joined, loose = model(), model()
    settings = recipe("sgd", momentum=0.0, weight_decay=0.0)
    fused = build_optimizer(joined, settings, fused={"sgd": JoiningSGD}, torch_fused=False)
    usual = build(loose, settings)
    for step in range(4):
        bucket = torch.randn(sum(p.numel() for p in joined.parameters()), generator=torch.Generator().manual_seed(step))
        before, first = bucket.clone(), 0
        for mine, other in zip(joined.parameters(), loose.parameters(), strict=True):
            view = bucket.as_strided(mine.shape, mine.stride(), first)
            first += mine.numel()
            mine.grad, other.grad = view, torch.empty_like(other).copy_(view)
        views = [p.grad for p in joined.parameters()]
        fused.step()
        usual.step()
        assert torch.equal(bucket, before)
        assert all(p.grad is view for p, view in zip(joined.parameters(), views, strict=True))
    assert torch.equal(weights(joined), weights(loose))


@pytest.mark.parametrize("name", NAMES)
def test_the_cpus_optimizer_gives_the_bits_of_the_plain_loop_over_elements(name: str) -> None:
    usual, looped = model(), model()
    fused = CpuPlatform.capabilities.torch_fused_optimizers
    train(usual, build(usual, recipe(name), torch_fused=fused), 0, 5)
    plain_loop = build(looped, recipe(name), torch_fused=False)
    for group in plain_loop.param_groups:
        group["foreach"] = False
    train(looped, plain_loop, 0, 5)
    assert torch.equal(weights(usual), weights(looped))


def test_a_fused_lamb_of_another_rule_is_not_taken() -> None:
    class NpuFusedLamb(torch.optim.SGD):
        pass

    optimizer = build_optimizer(model(), recipe("lamb"), fused={"lamb": NpuFusedLamb}, torch_fused=False)
    assert type(optimizer).__module__.startswith("timm.")


@pytest.mark.parametrize("name", NAMES)
def test_two_optimizers_of_one_recipe_move_weights_alike(name: str) -> None:
    first, second = model(), copy.deepcopy(model())
    train(first, build(first, recipe(name)), 0, 4)
    train(second, build(second, recipe(name)), 0, 4)
    assert torch.equal(weights(first), weights(second))
