"""Models by name: the project's own, then torchvision's, then timm's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torchvision import models as torchvision_models

from unisono.errors import UserError
from unisono.models.cifar import mlp, resnet_with_cifar_stem, small_resnet
from unisono.recipe.schema import ModelRecipe

OWN: dict[str, Callable[..., nn.Module]] = {
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

    return {"own": sorted(OWN), "torchvision": _torchvision_names(), "timm": [f"timm/{name}" for name in timm.list_models()]}


def build_model(model: ModelRecipe, *, num_classes: int, channels: int, image_size: int, seed: int) -> nn.Module:
    """A network with fresh weights, fp32, on the CPU. The weights are a pure function of (seed, recipe).

    Raises:
        UserError: M101 an unknown name, M102 the model does not take such images.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        built = _make(model, num_classes=num_classes, channels=channels, image_size=image_size)
    _override(built, model)
    return built


def _make(model: ModelRecipe, *, num_classes: int, channels: int, image_size: int) -> nn.Module:
    name = model.name
    shape = {"num_classes": num_classes, "channels": channels, "image_size": image_size}
    if name in OWN:
        return OWN[name](**shape)
    if name in _torchvision_names():
        return _from_torchvision(name, num_classes, channels, model.dropout)
    import timm

    plain = name.removeprefix("timm/")
    if timm.is_model(plain):
        extra = {} if model.dropout is None else {"drop_rate": model.dropout}
        return timm.create_model(plain, num_classes=num_classes, in_chans=channels, **extra)  # type: ignore[no-any-return]  # untyped
    known = [*OWN, *_torchvision_names(), *timm.list_models()]
    raise UserError.unknown("M101", "model", name, known)


def _torchvision_names() -> list[str]:
    return sorted(torchvision_models.list_models(module=torchvision_models))


def _from_torchvision(name: str, num_classes: int, channels: int, dropout: float | None) -> nn.Module:
    extra: dict[str, Any] = {"num_classes": num_classes}
    if dropout is not None and name.startswith(("mobilenet", "efficientnet", "vgg", "alexnet", "squeezenet", "convnext", "vit", "maxvit")):
        extra["dropout"] = dropout
    if name in ("googlenet", "inception_v3"):
        # The auxiliary heads return a tuple in training and are left out by every modern recipe.
        extra |= {"aux_logits": False, "init_weights": True}
    built: nn.Module = torchvision_models.get_model(name, weights=None, **extra)
    return built if channels == 3 else _with_first_convolution(built, channels, name)


def _with_first_convolution(built: nn.Module, channels: int, name: str) -> nn.Module:
    for path, module in built.named_modules():
        if isinstance(module, nn.Conv2d) and module.in_channels == 3:
            fresh = nn.Conv2d(
                channels,
                module.out_channels,
                module.kernel_size,  # type: ignore[arg-type]  # torch types it as tuple[int, ...]
                module.stride,  # type: ignore[arg-type]  # likewise
                module.padding,  # type: ignore[arg-type]  # likewise
                bias=module.bias is not None,
            )
            nn.init.kaiming_normal_(fresh.weight, mode="fan_out", nonlinearity="relu")
            parent, _, child = path.rpartition(".")
            setattr(built.get_submodule(parent), child, fresh)
            return built
    raise UserError("M102", f"{name} takes no image of {channels} channel(s)", "it has no first convolution over 3 channels", "choose another model")


def _override(built: nn.Module, model: ModelRecipe) -> None:
    for module in built.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            if model.batch_norm_momentum is not None:
                module.momentum = model.batch_norm_momentum
            if model.batch_norm_eps is not None:
                module.eps = model.batch_norm_eps
