"""Networks by name: their sizes, their weights as a function of the seed, what a recipe overrides, what is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torchvision.models.resnet import BasicBlock

from unisono.errors import UserError
from unisono.models import build_model, model_names
from unisono.recipe.schema import ModelRecipe


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def built(
    name: str, *, num_classes: int = 10, channels: int = 3, image_size: int = 32, seed: int = 0, **recipe: float
) -> nn.Module:
    return build_model(
        ModelRecipe.model_validate({"name": name, **recipe}),
        num_classes=num_classes,
        channels=channels,
        image_size=image_size,
        seed=seed,
    )


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def digest(model: nn.Module) -> str:
    found = hashlib.sha256()
    for name, value in model.state_dict().items():
        found.update(name.encode() + value.numpy().tobytes())
    return found.hexdigest()


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("mlp", {"channels": 1, "image_size": 28}, 784 * 512 + 512 + 512 * 512 + 512 + 512 * 10 + 10),
        # He et al. 2016, section 4.2: 0.27, 0.46 and 0.85 M; ours has 1 x 1 shortcuts besides.
        ("resnet20_cifar", {}, 272_474),
        ("resnet32_cifar", {}, 466_906),
        ("resnet56_cifar", {}, 855_770),
        ("resnet18_cifar", {}, 11_173_962),
        # mmpretrain's table: 23.52 M.
        ("resnet50_cifar", {}, 23_520_842),
        # torchvision's table: 5,483,032.
        ("mobilenet_v3_large", {"num_classes": 1000}, 5_483_032),
        ("resnet50", {"num_classes": 1000}, 25_557_032),
    ],
)
def test_a_model_has_its_published_number_of_parameters(name: str, shape: dict[str, int], count: int) -> None:
    model = built(name, **shape)
    assert parameters(model) == count
    assert model.training


def test_the_cifar_stem_keeps_the_resolution_until_the_first_stage_with_stride() -> None:
    model = built("resnet50_cifar").eval()
    sizes: list[int] = []
    for stage in (model.conv1, model.layer1, model.layer4):
        stage.register_forward_hook(lambda _module, _inputs, output: sizes.append(output.shape[-1]))
    with torch.no_grad():
        logits = model(torch.zeros(1, 3, 32, 32))
    assert sizes == [32, 32, 4]
    assert logits.shape == (1, 10)


def test_residual_branches_of_the_cifar_nets_start_at_zero_and_the_first_logits_are_small() -> None:
    model = built("resnet18_cifar")
    last = [module.bn2.weight for module in model.modules() if isinstance(module, BasicBlock)]
    assert len(last) == 8
    assert all(bool((weight == 0).all()) for weight in last)
    with torch.no_grad():
        logits = model(torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert 0 < logits.std() < 1


def test_mobilenetv3_large_has_the_batch_norm_and_dropout_of_its_paper() -> None:
    model = built("mobilenet_v3_large", num_classes=1000)
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-3, 0.01)}
    assert [module.p for module in model.modules() if isinstance(module, nn.Dropout)] == [0.2]


@pytest.mark.parametrize("name", ["mlp", "resnet20_cifar", "squeezenet1_1", "timm/resnet10t"])
def test_weights_are_a_function_of_the_seed_and_leave_the_global_generator_alone(name: str) -> None:
    torch.manual_seed(11)
    before = torch.random.get_rng_state()
    first = digest(built(name, seed=5))
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(12)
    assert digest(built(name, seed=5)) == first
    assert digest(built(name, seed=6)) != first


def test_weights_are_fp32_on_the_cpu_whatever_the_default_device() -> None:
    with torch.device("meta"):
        model = built("resnet20_cifar")
    assert {(p.device.type, p.dtype) for p in model.parameters()} == {("cpu", torch.float32)}


def test_batch_norm_overrides_reach_every_layer_and_unset_ones_leave_the_models_own() -> None:
    changed = built("resnet20_cifar", batch_norm_momentum=0.03, batch_norm_eps=1e-4)
    own = built("resnet20_cifar")
    for model, expected in ((changed, (0.03, 1e-4)), (own, (0.1, 1e-5))):
        norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
        assert len(norms) == 21
        assert {(norm.momentum, norm.eps) for norm in norms} == {expected}


@pytest.mark.parametrize(
    ("name", "size"),
    [("mlp", 32), ("resnet20_cifar", 32), ("squeezenet1_1", 64), ("timm/resnet10t", 32)],
)
def test_dropout_before_the_classifier_acts_in_training_alone_and_changes_no_parameter_name(
    name: str, size: int
) -> None:
    plain, dropped = built(name, image_size=size), built(name, image_size=size, dropout=1.0)
    assert list(plain.state_dict()) == list(dropped.state_dict())
    assert digest(plain) == digest(dropped)
    torch.manual_seed(0)
    images = torch.randn(4, 3, size, size)
    with torch.no_grad():
        torch.testing.assert_close(dropped.eval()(images), plain.eval()(images))
        in_training = dropped.train()(images)
    # All features dropped: every image gives the same logits.
    torch.testing.assert_close(in_training, in_training[:1].expand_as(in_training))


@pytest.mark.parametrize("name", ["resnet18"])
def test_a_grey_model_computes_what_the_colour_model_would_for_the_grey_image_three_times(name: str) -> None:
    grey, colour = built(name, channels=1).eval(), built(name).eval()
    image = torch.randn(2, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(grey(image), colour(image.expand(-1, 3, -1, -1)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["resnet20_cifar", "timm/resnet10t"])
def test_own_and_timms_models_take_one_channel(name: str) -> None:
    model = built(name, channels=1, num_classes=7).eval()
    with torch.no_grad():
        assert model(torch.zeros(2, 1, 32, 32)).shape == (2, 7)


def test_models_of_fixed_size_are_made_for_the_recipes_size() -> None:
    model = built("timm/vit_tiny_patch16_224", image_size=48).eval()
    with torch.no_grad():
        assert model(torch.zeros(1, 3, 48, 48)).shape == (1, 10)


def test_models_with_auxiliary_heads_give_plain_logits_in_training() -> None:
    model = built("googlenet", image_size=64).train()
    logits = model(torch.zeros(2, 3, 64, 64))
    assert isinstance(logits, torch.Tensor)
    assert logits.shape == (2, 10)


@pytest.mark.parametrize(
    ("code", "name", "shape", "words"),
    [
        ("M101", "resnet5o", {}, "resnet50"),
        ("M101", "timm/nothing_like_it", {}, "unknown model"),
        ("M102", "alexnet", {"image_size": 32}, "3 x 32 x 32"),
        ("M102", "vit_b_16", {"image_size": 30}, "3 x 30 x 30"),
        ("M103", "mobilenet_v2", {}, "gives tuple"),
    ],
)
def test_a_model_that_cannot_do_the_job_is_refused_by_name(
    code: str, name: str, shape: dict[str, int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if code == "M103":
        monkeypatch.setattr("unisono.models.registry._from_torchvision", lambda *_: Pair())
    with pytest.raises(UserError) as caught:
        built(name, **shape)
    assert caught.value.code == code
    assert words in str(caught.value)


class Pair(nn.Module):
    """Gives two tensors, as detectors and models with auxiliary heads do."""

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return images.mean(dim=(2, 3)), images.mean(dim=(1, 2))


def test_dropout_without_a_place_for_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unisono.models.registry._from_torchvision", lambda *_: Pair())
    with pytest.raises(UserError, match="M104"):
        built("mobilenet_v2", dropout=0.5)


def test_the_list_of_names_has_the_three_origins_and_every_name_of_ours_builds() -> None:
    names = model_names()
    assert list(names) == ["own", "torchvision", "timm"]
    assert "mobilenet_v3_large" in names["torchvision"]
    assert "timm/resnet50" in names["timm"]
    for name in names["own"]:
        assert parameters(built(name, channels=1, image_size=28)) > 0
