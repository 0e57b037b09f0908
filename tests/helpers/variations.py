"""Small runs that together touch everything a recipe can ask for; law 1 holds for each."""

from __future__ import annotations

from typing import Any

MIXED = {
    "augment.crop_padding": 2,
    "augment.horizontal_flip": 0.5,
    "augment.random_erasing": 0.5,
    "augment.mixup_alpha": 1.0,
    "augment.mixup_probability": 0.5,
    "augment.cutmix_alpha": 1.0,
    "augment.cutmix_probability": 0.5,
    "optimizer.max_grad_norm": 0.5,
}
OVERFLOWING = {"precision.compute": "fp16", "precision.initial_loss_scale": 2.0**40, "non_finite_limit": 50}

VARIATIONS: dict[str, dict[str, Any]] = {
    "residual network with batch norm": {},
    "perceptron, averaged weights": {"model.name": "mlp", "ema.decay": 0.9},
    "dropout, label smoothing, averaged weights": {
        "model.name": "mobilenet_v3_small",
        "model.dropout": 0.3,
        "data.image_size": 32,
        "loss.label_smoothing": 0.1,
        "ema.decay": 0.9,
        "train_for": "3 steps",
    },
    "crop, flip, erasing, mixup, cutmix, clipping": MIXED,
    "bf16": {"precision.compute": "bf16"},
    "fp16 whose scale overflows, perceptron": {"model.name": "mlp", **OVERFLOWING},
    "fp16 whose scale overflows, residual network, clipping": {
        **OVERFLOWING,
        "precision.initial_loss_scale": 2.0**22,
        "train_for": "2 steps",
        "optimizer.max_grad_norm": 0.5,
        "ema.decay": 0.9,
    },
    "AutoAugment, streamed": {
        "augment.auto_augment": "original-mstd0.5",
        "data.storage": "streamed",
        "train_for": "3 steps",
    },
    "AutoAugment by two workers": {
        "augment.auto_augment": "original-mstd0.5",
        "data.workers": 2,
        "train_for": "3 steps",
    },
}
for _name in ("rmsprop", "adamw", "lars", "lamb"):
    VARIATIONS[_name] = {
        "model.name": "mlp",
        "optimizer.name": _name,
        "optimizer.learning_rate": 0.001,
        "optimizer.max_grad_norm": 1.0,
        "ema.decay": 0.9,
        "train_for": "3 steps",
    }
