"""The shipped recipes: the published hyperparameters, and a header that says what to type and what to expect."""

from __future__ import annotations

from typing import Any

import pytest

from unisono.job.learning_rate import learning_rate
from unisono.recipe.describe import header_comment, schema_keys, value_of
from unisono.recipe.load import load_recipe, recipe_names

CIFAR10 = {
    "model.name": "resnet50_cifar",
    "data.name": "cifar10",
    "augment.crop_padding": 4,
    "augment.horizontal_flip": 0.5,
    "optimizer.momentum": 0.9,
    "optimizer.weight_decay": 1e-4,
}
CIFAR100 = CIFAR10 | {"data.name": "cifar100", "optimizer.weight_decay": 5e-4}
LARGE = {
    "per_replica_batch_size": 256,
    "optimizer.learning_rate": 1.6,
    "schedule.name": "cosine",
    "schedule.lr_warmup": "20 epochs",
    "loss.label_smoothing": 0.1,
    "augment.mixup_probability": 0.5,
    "augment.mixup_alpha": 1.0,
    "augment.cutmix_probability": 0.5,
    "augment.cutmix_alpha": 1.0,
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "mlp_fashion_mnist": {"model.name": "mlp", "train_for": "10 epochs", "per_replica_batch_size": 64},
    "mlp_fashion_mnist_tutorial": {
        "model.name": "mlp",
        "train_for": "5 epochs",
        "per_replica_batch_size": 64,
        "optimizer.name": "sgd",
        "optimizer.learning_rate": 1e-3,
        "optimizer.momentum": 0,
        "schedule.name": "constant",
        "augment.mean": (0.0,),
        "augment.std": (1.0,),
    },
    "resnet50_cifar10": CIFAR10
    | {
        "per_replica_batch_size": 16,
        "optimizer.learning_rate": 0.1,
        "schedule.gamma": 0.1,
        "schedule.milestones": ("100 epochs", "150 epochs"),
        "train_for": "200 epochs",
        "reference.top1_accuracy": 0.9555,
    },
    "resnet50_cifar100": CIFAR100
    | {
        "per_replica_batch_size": 16,
        "optimizer.learning_rate": 0.1,
        "schedule.gamma": 0.2,
        "schedule.milestones": ("60 epochs", "120 epochs", "160 epochs"),
        "train_for": "200 epochs",
        "reference.top1_accuracy": 0.7990,
    },
    "resnet50_cifar100_bs32": CIFAR100
    | {"per_replica_batch_size": 32, "optimizer.learning_rate": 0.2, "schedule.name": "cosine"},
    "resnet50_cifar100_bs256": CIFAR100 | LARGE,
    "resnet50_cifar10_bs32": CIFAR10
    | {"per_replica_batch_size": 32, "optimizer.learning_rate": 0.2, "schedule.name": "cosine"},
    "resnet50_cifar10_bs256": CIFAR10 | LARGE,
    "resnet20_cifar10": CIFAR10
    | {"model.name": "resnet20_cifar", "per_replica_batch_size": 16, "optimizer.learning_rate": 0.1},
    "mobilenetv3_large_imagenet": {
        "model.name": "mobilenet_v3_large",
        "model.batch_norm_eps": 1e-3,
        "model.batch_norm_momentum": 0.01,
        "model.dropout": 0.2,
        "per_replica_batch_size": 128,
        "train_for": "600 epochs",
        "optimizer.name": "rmsprop",
        "optimizer.learning_rate": 0.064,
        "optimizer.alpha": 0.9,
        "optimizer.eps": 0.0316,
        "optimizer.momentum": 0.9,
        "optimizer.weight_decay": 1e-5,
        "schedule.name": "exponential",
        "schedule.gamma": 0.973,
        "schedule.period": "2 epochs",
        "augment.random_resized_crop": True,
        "augment.auto_augment": "original-mstd0.5",
        "augment.horizontal_flip": 0,
        "augment.eval_resize": 256,
        "data.image_size": 224,
    },
    "resnet50_imagenet": {
        "model.name": "resnet50",
        "per_replica_batch_size": 512,
        "train_for": "90 epochs",
        "optimizer.name": "sgd",
        "optimizer.learning_rate": 1.6,
        "optimizer.momentum": 0.9,
        "optimizer.weight_decay": 1e-4,
        "schedule.name": "cosine",
        "schedule.lr_warmup": "8 epochs",
        "loss.label_smoothing": 0.1,
        "augment.horizontal_flip": 0.5,
        "reference.top1_accuracy": 0.767,
    },
}


def test_every_shipped_recipe_is_compared_with_its_publication() -> None:
    assert sorted(PUBLISHED) == recipe_names()


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_hyperparameters_are_the_published_ones(name: str) -> None:
    recipe = load_recipe(name).recipe
    keys = {key.dotted: key for key in schema_keys()}
    found = {dotted: value_of(recipe, keys[dotted]) for dotted in PUBLISHED[name]}
    assert {dotted: in_words(value) for dotted, value in found.items()} == {
        dotted: in_words(value) for dotted, value in PUBLISHED[name].items()
    }
    assert recipe.replicas == 8


def in_words(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(in_words(part) for part in value)
    return value if isinstance(value, (int, float, str)) else str(value)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_header_says_the_command_the_accuracy_and_the_time(name: str) -> None:
    header = "\n".join(header_comment(load_recipe(name)))
    assert header.startswith(f"unisono train {name} ")
    assert "top-1" in header


@pytest.mark.parametrize(("name", "scale"), [("resnet50_cifar10", 255), ("resnet50_cifar100", 255)])
def test_pixel_statistics_are_the_published_ones_on_the_scale_of_zero_to_one(name: str, scale: int) -> None:
    published = {
        "resnet50_cifar10": ([125.307, 122.961, 113.8575], [51.5865, 50.847, 51.255]),
        "resnet50_cifar100": ([129.304, 124.070, 112.434], [68.170, 65.392, 70.418]),
    }[name]
    augment = load_recipe(name).recipe.augment
    for ours, theirs in zip((augment.mean, augment.std), published, strict=True):
        assert ours == pytest.approx([value / scale for value in theirs], abs=1e-5)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_rate_ends_lower_than_it_peaked_unless_constant(name: str) -> None:
    recipe = load_recipe(name).recipe
    steps_per_epoch = 50_000 // recipe.global_batch_size
    total = recipe.train_for.steps(steps_per_epoch, recipe.global_batch_size)
    peak = recipe.optimizer.learning_rate
    rates = [
        learning_rate(
            recipe.schedule,
            peak=peak,
            step=step,
            total_steps=total,
            steps_per_epoch=steps_per_epoch,
            global_batch_size=recipe.global_batch_size,
        )
        for step in (*range(0, total - 1, max(1, total // 50)), total - 1)
    ]
    assert max(rates) <= peak
    assert rates[-1] == peak if recipe.schedule.name == "constant" else rates[-1] < peak / 50
