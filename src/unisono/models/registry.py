"""Models by name: the project's own, then torchvision's, then timm's.

The libraries are imported where one of their models is made: torchvision alone takes a second of every rank's start.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from unisono.errors import UserError
from unisono.models.cifar import Builder, mlp, resnet_with_cifar_stem, small_resnet
from unisono.models.overrides import set_batch_norm, set_dropout, set_grey_input
from unisono.recipe.schema import ModelRecipe

OWN: dict[str, Builder] = {
    "mlp": mlp,
    "resnet18_cifar": resnet_with_cifar_stem(18),
    "resnet50_cifar": resnet_with_cifar_stem(50),
    "resnet20_cifar": small_resnet(20),
    "resnet32_cifar": small_resnet(32),
    "resnet56_cifar": small_resnet(56),
}


def model_names() -> dict[str, list[str]]:
    """Every name that `--model` takes, by where the model comes from."""
    import timm

    return {
        "own": sorted(OWN),
        "torchvision": _torchvision_names(),
        "timm": [f"timm/{name}" for name in timm.list_models()],
    }


def build_model(model: ModelRecipe, *, num_classes: int, channels: int, image_size: int, seed: int) -> nn.Module:
    """A network with fresh weights, fp32, on the CPU. The weights are a pure function of (seed, recipe).

    Args:
        channels: 1 or 3.
        image_size: height and width of the images in pixels.

    Raises:
        UserError: M101 an unknown name, M102 the model does not take such images, M103 it gives no logits,
            M104 dropout where the model has no place for it.
    """
    shape = {"num_classes": num_classes, "channels": channels, "image_size": image_size}
    with torch.random.fork_rng(devices=[]), torch.device("cpu"):
        torch.default_generator.manual_seed(seed)
        built = _make(model.name, **shape)
        if model.dropout is not None:
            set_dropout(built, model.dropout, num_classes)
        set_batch_norm(built, momentum=model.batch_norm_momentum, eps=model.batch_norm_eps)
        if model.name not in OWN:
            _check_logits(built, model.name, **shape)
    return built


def _torchvision_names() -> list[str]:
    from torchvision import models as torchvision_models

    return sorted(torchvision_models.list_models(module=torchvision_models))


def _make(name: str, *, num_classes: int, channels: int, image_size: int) -> nn.Module:
    if name in OWN:
        return OWN[name](num_classes=num_classes, channels=channels, image_size=image_size)
    if name in _torchvision_names():
        built = _from_torchvision(name, num_classes, image_size)
        if channels == 1:
            set_grey_input(built, name)
        return built
    import timm

    if timm.is_model(name.removeprefix("timm/")):
        return _from_timm(name.removeprefix("timm/"), num_classes, channels, image_size)
    raise UserError.unknown("M101", "model", name, [*OWN, *_torchvision_names(), *timm.list_models()])


def _from_torchvision(name: str, num_classes: int, image_size: int) -> nn.Module:
    from torchvision import models as torchvision_models

    extra: dict[str, Any] = {"num_classes": num_classes}
    if name in ("googlenet", "inception_v3"):
        # With auxiliary heads they return tuples in training; recipes of today leave those heads out.
        extra |= {"aux_logits": False, "init_weights": True}
    elif name.startswith("vit_"):
        extra["image_size"] = image_size
    elif name.startswith("maxvit_"):
        extra["input_size"] = (image_size, image_size)
    try:
        built: nn.Module = torchvision_models.get_model(name, weights=None, **extra)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise _unfit(name, 3, image_size, error) from error
    return built


def _from_timm(name: str, num_classes: int, channels: int, image_size: int) -> nn.Module:
    import timm

    extra: dict[str, Any] = {}
    published = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if published is not None and published.fixed_input_size and published.input_size[-1] != image_size:
        extra["img_size"] = image_size
    try:
        built: nn.Module = timm.create_model(name, num_classes=num_classes, in_chans=channels, **extra)
    except (AssertionError, RuntimeError, TypeError, ValueError) as error:
        raise _unfit(name, channels, image_size, error) from error
    return built


def _check_logits(built: nn.Module, name: str, *, num_classes: int, channels: int, image_size: int) -> None:
    """One image through a model of a library, so that a misfit is told by name and not from inside a layer.

    Raises:
        UserError: M102 the image does not pass, M103 what comes out is no [1, num_classes].
    """
    was_training = built.training
    built.eval()
    try:
        with torch.no_grad():
            logits = built(torch.zeros(1, channels, image_size, image_size))
    except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
        raise _unfit(name, channels, image_size, error) from error
    finally:
        built.train(was_training)
    if not isinstance(logits, Tensor) or logits.shape != (1, num_classes):
        gives = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise UserError(
            "M103",
            f"{name} gives no logits of (1, {num_classes}) for one image",
            f"it gives {gives}, so it is no classifier that this training loop can use",
            "choose another model; `unisono recipes --models` lists them",
        )


def _unfit(name: str, channels: int, image_size: int, error: Exception) -> UserError:
    reason = str(error).strip().splitlines()
    return UserError(
        "M102",
        f"{name} does not take images of {channels} x {image_size} x {image_size}",
        reason[0][:300] if reason else type(error).__name__,
        "set data.image_size to what the model was made for (224 in most), or choose another model",
    )
