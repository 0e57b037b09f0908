"""The moving average of the weights: its formula, its loan to the model, its state."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from unisono.train.ema import Ema


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).to(memory_format=torch.channels_last)


def move(net: nn.Module, by: float) -> None:
    with torch.no_grad():
        for p in net.parameters():
            p += by


def test_the_average_follows_its_formula() -> None:
    net = model()
    ema = Ema(net, decay=0.9)
    expected = {name: p.detach().clone() for name, p in net.named_parameters()}
    for _ in range(3):
        move(net, 1.0)
        ema.update()
        for name, p in net.named_parameters():
            expected[name] = 0.9 * expected[name] + 0.1 * p.detach()
    for name, average in ema.state()["weights"].items():
        torch.testing.assert_close(average, expected[name])


def test_the_model_computes_with_the_average_inside_and_with_its_own_weights_after() -> None:
    net = model().eval()
    images = torch.randn(1, 3, 8, 8)
    before = net(images)
    ema = Ema(net, decay=0.5)
    move(net, 1.0)
    moved = net(images)
    with ema.in_place_of_weights():
        torch.testing.assert_close(net(images), before)
    assert torch.equal(net(images), moved)


def test_weights_come_back_when_an_evaluation_fails() -> None:
    net = model()
    ema = Ema(net, decay=0.5)
    move(net, 1.0)
    weights = [p.detach().clone() for p in net.parameters()]
    with pytest.raises(RuntimeError, match="evaluation"), ema.in_place_of_weights():
        raise RuntimeError("evaluation")
    assert all(torch.equal(p, weight) for p, weight in zip(net.parameters(), weights, strict=True))


def test_a_restored_average_goes_on_as_if_never_stopped() -> None:
    straight, resumed = model(), model()
    first = Ema(straight, decay=0.9)
    move(straight, 1.0)
    first.update()
    move(resumed, 1.0)
    second = Ema(resumed, decay=0.9)
    second.load_state({"weights": {name: average.contiguous() for name, average in first.state()["weights"].items()}})
    for net, ema in ((straight, first), (resumed, second)):
        move(net, 0.3)
        ema.update()
    for name, average in first.state()["weights"].items():
        assert torch.equal(average, second.state()["weights"][name])


def test_the_average_moves_no_weight() -> None:
    net = model()
    weights = [p.detach().clone() for p in net.parameters()]
    ema = Ema(net, decay=0.9)
    ema.update()
    assert all(torch.equal(p, weight) for p, weight in zip(net.parameters(), weights, strict=True))
