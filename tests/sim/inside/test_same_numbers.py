"""Law 6: a simulated NPU computes what the CPU computes, bit for bit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch_npu
from torch import nn
from torch.nn import functional as F

try:
    import torchvision
except (ImportError, RuntimeError):  # none, or one of another build than torch
    torchvision = None

IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(1))
LABELS = torch.tensor([3, 7])
SEQUENCE = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(2))


class Recurrent(nn.Module):
    """A two-layer recurrent net in both directions with dropout between its layers."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.net = kind(8, 6, 2, dropout=0.4, bidirectional=True, batch_first=True)
        self.head = nn.Linear(12, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.net(x)[0].mean(1))


MODELS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "resnet50": (lambda: torchvision.models.resnet50(num_classes=10), IMAGES),
    "mobilenet_v3_large": (lambda: torchvision.models.mobilenet_v3_large(num_classes=10), IMAGES),
    "vision transformer": (
        lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=10, dropout=0.1),
        IMAGES,
    ),
    "lstm": (lambda: Recurrent(nn.LSTM), SEQUENCE),
    "gru": (lambda: Recurrent(nn.GRU), SEQUENCE),
}


def labels_for(inputs: torch.Tensor) -> torch.Tensor:
    """A class for each sample."""
    return torch.arange(inputs.shape[0]) % 10


def train(model: nn.Module, inputs: torch.Tensor, labels: torch.Tensor, steps: int) -> list[torch.Tensor]:
    """Losses, gradients of the last step, and the state after it, on the CPU."""
    optimizer = torch.optim.AdamW(model.parameters())
    losses = []
    for step in range(steps):
        torch.manual_seed(step)
        loss = F.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    return [tensor.cpu() for tensor in (*losses, *gradients, *model.state_dict().values())]


def largest_difference(first: list[torch.Tensor], second: list[torch.Tensor]) -> float:
    """The largest absolute difference of two equally long lists of tensors."""
    assert len(first) == len(second) > 0
    return max(float((a.double() - b.double()).abs().max()) for a, b in zip(first, second, strict=True) if a.numel())


@pytest.mark.parametrize("name", MODELS)
def test_loss_gradients_and_weights_are_the_cpus(name: str) -> None:
    if torchvision is None and name in ("resnet50", "mobilenet_v3_large", "vision transformer"):
        pytest.skip("the torchvision here does not fit its torch")
    make, inputs = MODELS[name]
    on_cpu = make()
    on_npu = copy.deepcopy(on_cpu).npu()
    labels = labels_for(inputs)
    expected = train(on_cpu, inputs, labels, steps=2)
    assert largest_difference(expected, train(on_npu, inputs.npu(), labels.npu(), steps=2)) == 0


def test_channels_last_gives_the_cpus_numbers_and_stays_channels_last() -> None:
    on_cpu = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10))
    on_cpu(IMAGES)
    on_cpu = on_cpu.to(memory_format=torch.channels_last)
    on_npu = copy.deepcopy(on_cpu).npu()
    images = IMAGES.to(memory_format=torch.channels_last)
    assert on_npu[0](images.npu()).is_contiguous(memory_format=torch.channels_last)
    expected = train(on_cpu, images, LABELS, steps=2)
    assert largest_difference(expected, train(on_npu, images.npu(), LABELS.npu(), steps=2)) == 0


def test_int32_class_indices_are_taken_as_the_npu_takes_them() -> None:
    logits = torch.randn(2, 10)
    expected = F.cross_entropy(logits, LABELS)
    assert torch.equal(F.cross_entropy(logits.npu(), LABELS.npu().int()).cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_gives_the_cpus_numbers(dtype: torch.dtype) -> None:
    if dtype not in torch.npu.get_amp_supported_dtype():
        pytest.skip("this chip has no bfloat16")
    on_cpu = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 10))
    on_npu = copy.deepcopy(on_cpu).npu()
    inputs = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=dtype):
        expected = on_cpu(inputs)
    with torch.autocast("npu", dtype=dtype):
        found = on_npu(inputs.npu())
    assert found.dtype is expected.dtype is dtype
    assert torch.equal(found.cpu(), expected)


FUSED: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "sgd": (torch.optim.SGD, torch_npu.optim.NpuFusedSGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 1e-4}),
    "adam": (torch.optim.Adam, torch_npu.optim.NpuFusedAdam, {"weight_decay": 1e-4}),
    "adamw": (torch.optim.AdamW, torch_npu.optim.NpuFusedAdamW, {}),
    "rmsprop": (torch.optim.RMSprop, torch_npu.optim.NpuFusedRMSprop, {"momentum": 0.9}),
    "adadelta": (torch.optim.Adadelta, torch_npu.optim.NpuFusedAdadelta, {}),
}


@pytest.mark.parametrize("name", FUSED)
def test_a_fused_optimizer_steps_as_torchs_plain_one(name: str) -> None:
    plain, fused, settings = FUSED[name]
    on_cpu = nn.Linear(8, 4)
    on_npu = copy.deepcopy(on_cpu).npu()
    first, second = plain(on_cpu.parameters(), foreach=False, **settings), fused(on_npu.parameters(), **settings)
    for _ in range(3):
        for model, optimizer, device in ((on_cpu, first, "cpu"), (on_npu, second, "npu")):
            optimizer.zero_grad()
            model(SEQUENCE.to(device)).square().sum().backward()
            optimizer.step()
    assert all(torch.equal(a, b.cpu()) for a, b in zip(on_cpu.parameters(), on_npu.parameters(), strict=True))


def test_rmsprop_in_tensorflows_form_is_timms() -> None:
    if torchvision is None:
        pytest.skip("timm needs a torchvision that fits torch")
    from timm.optim import RMSpropTF

    on_cpu = nn.Linear(8, 4)
    on_npu = copy.deepcopy(on_cpu).npu()
    settings = {"lr": 0.01, "alpha": 0.9, "eps": 1e-3, "momentum": 0.9, "weight_decay": 1e-5}
    first = RMSpropTF(on_cpu.parameters(), **settings)
    second = torch_npu.optim.NpuFusedRMSpropTF(on_npu.parameters(), **settings)
    for _ in range(3):
        for model, optimizer, device in ((on_cpu, first, "cpu"), (on_npu, second, "npu")):
            optimizer.zero_grad()
            model(SEQUENCE.to(device)).square().sum().backward()
            optimizer.step()
    for a, b in zip(on_cpu.parameters(), on_npu.parameters(), strict=True):
        torch.testing.assert_close(a, b.cpu())


@pytest.mark.parametrize("name", ["NpuFusedLamb", "NpuFusedAdamP", "NpuFusedBertAdam"])
def test_the_other_fused_optimizers_lower_the_loss(name: str) -> None:
    model = nn.Linear(8, 4).npu()
    optimizer = getattr(torch_npu.optim, name)(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = model(SEQUENCE.npu()).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_equal_seeds_draw_equal_numbers_on_npu_and_cpu() -> None:
    draws = []
    for device in ("cpu", "npu:3"):
        torch.manual_seed(7)
        draws.append([torch.rand(5, device=device), torch.randn(5, device=device), torch.randperm(9, device=device)])
    assert all(torch.equal(a, b.cpu()) for a, b in zip(*draws, strict=True))


def test_a_generator_state_goes_round() -> None:
    state = torch.npu.get_rng_state(1)
    first = torch.rand(4, device="npu:1")
    torch.npu.set_rng_state(state, 1)
    assert torch.equal(torch.rand(4, device="npu:1"), first)
    with torch.random.fork_rng(devices=[1], device_type="npu"):
        torch.rand(4, device="npu:1")
    torch.npu.set_rng_state(state, 1)
    generator = torch.Generator(device="npu:1").manual_seed(3)
    assert torch.equal(torch.rand(4, device="npu:1"), first)
    drawn = torch.rand(4, device="npu:1", generator=generator).cpu()
    assert torch.equal(drawn, torch.rand(4, generator=torch.Generator().manual_seed(3)))


def test_sync_batch_norm_of_one_process_is_batch_norm() -> None:
    plain, synced = nn.BatchNorm2d(3).npu(), nn.SyncBatchNorm(3).npu()
    stats = torch.batch_norm_stats(IMAGES.npu(), 1e-5)
    torch.testing.assert_close(stats[0].cpu(), IMAGES.mean((0, 2, 3)))
    out = torch.batch_norm_elemt(IMAGES.npu(), plain.weight, plain.bias, *stats, 1e-5)
    torch.testing.assert_close(out, plain(IMAGES.npu()))
    assert torch.equal(synced(IMAGES.npu()), nn.BatchNorm2d(3).npu()(IMAGES.npu()))


def test_views_outputs_and_in_place_changes_alias_as_on_the_cpu() -> None:
    def run(device: str) -> list[torch.Tensor]:
        base = torch.arange(12, dtype=torch.float32).to(device)
        view = base.view(3, 4).t()[1:]
        view.add_(1)
        out = torch.empty(0, device=device)
        torch.add(view, view, out=out)
        taken = base[torch.tensor([1, 3])]
        base.resize_(16)[12:] = -1
        other = torch.empty(2, device=device).set_(base.untyped_storage(), 4, (2, 2))
        other.mul_(10)
        first, second = torch.sort(view, dim=1, descending=True)
        return [tensor.cpu() for tensor in (base, view, out, taken, other, first, second)]

    assert all(torch.equal(a, b) for a, b in zip(run("cpu"), run("npu:2"), strict=True))


def test_parameter_data_assignment_keeps_the_parameter() -> None:
    layer = nn.Linear(2, 2)
    parameter = layer.weight
    layer.weight.data = torch.ones(2, 2, device="npu")
    assert layer.weight is parameter
    assert layer.weight.device.type == "npu"


def test_one_process_uses_all_devices() -> None:
    parts = [nn.Linear(4, 4).npu(index) for index in range(torch.npu.device_count())]
    reference = [copy.deepcopy(part).cpu() for part in parts]
    x = expected = torch.randn(2, 4)
    for index, (part, plain) in enumerate(zip(parts, reference, strict=True)):
        x, expected = part(x.to(f"npu:{index}")), plain(expected)
    x.sum().backward()
    expected.sum().backward()
    assert x.device.index == torch.npu.device_count() - 1
    assert torch.equal(x.cpu(), expected)
    assert torch.equal(parts[0].weight.grad.cpu(), reference[0].weight.grad)


def test_torch_compile_traces_npu_code() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.0), nn.ReLU(), nn.Linear(8, 2)).npu()
    x = torch.randn(3, 4, device="npu")
    assert torch.equal(torch.compile(model, backend="aot_eager")(x), model(x))
