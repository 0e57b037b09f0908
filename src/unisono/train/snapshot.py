"""The whole training state as tensors and plain types, and back. Nothing in it depends on the number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from unisono.errors import UserError
from unisono.recipe.schema import Recipe
from unisono.train.state import TrainState

if TYPE_CHECKING:
    from unisono.train.trainer import Trainer

# Settings that move work about without changing the model: a resumed run may change them, and digests ignore them.
_NO_PART_OF_THE_MODEL = (
    "description",
    "reference",
    "checkpoint",
    "data.workers",
    "data.storage",
    "reduction.bucket_mib",
)


def identity(recipe: Recipe) -> dict[str, Any]:
    """The recipe as dotted keys and plain values, without what cannot change the model."""
    flat: dict[str, Any] = {}
    _flatten(recipe.model_dump(mode="json"), "", flat)
    return {
        key: value
        for key, value in flat.items()
        if not any(key == no or key.startswith(f"{no}.") for no in _NO_PART_OF_THE_MODEL)
    }


def _flatten(table: dict[str, Any], prefix: str, into: dict[str, Any]) -> None:
    for key, value in table.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{key}.", into)
        else:
            into[prefix + key] = value


def snapshot(trainer: Trainer) -> dict[str, Any]:
    """What a checkpoint holds; `model` loads into a plain model anywhere. Collective."""
    replicas = trainer.job.recipe.replicas
    rows = trainer.buffers.gather(replicas)
    model = dict(trainer.model.state_dict())
    model.update(trainer.buffers.mean_of(rows))
    return {
        "recipe": identity(trainer.job.recipe),
        "class_names": list(trainer.class_names),
        "state": trainer.state.to_plain(),
        "model": model,
        "replica_buffers": rows,
        # Its settings are the recipe's; the groups would add flags of one platform's kernels.
        "optimizer": trainer.optimizer.state_dict()["state"],
        "loss_scale": trainer.scaler.state(),
        "ema": trainer.ema.state() if trainer.ema is not None else None,
    }


def restore(trainer: Trainer, payload: dict[str, Any], allow_changed: tuple[str, ...]) -> None:
    """Put a snapshot back, on whatever number of ranks.

    Raises:
        UserError: C201 another model, C202 the recipe differs in keys that were not allowed to, C203 other classes.
    """
    refuse_changes(payload["recipe"], identity(trainer.job.recipe), allow_changed)
    refuse_other_classes(payload["class_names"], trainer.class_names)
    load_weights(trainer.model, payload["model"], trainer.job.recipe.model.name)
    trainer.buffers.load(payload["replica_buffers"], trainer.block)
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": payload["optimizer"], "param_groups": groups})
    trainer.scaler.load_state(payload["loss_scale"])
    if trainer.ema is not None and payload["ema"] is not None:
        trainer.ema.load_state(payload["ema"])
    trainer.state = TrainState.from_plain(payload["state"])


def refuse_changes(saved: dict[str, Any], now: dict[str, Any], allowed: tuple[str, ...]) -> None:
    """A run that goes on with another recipe is another run.

    Raises:
        UserError: C202, naming every differing key with both values.
    """
    keys = sorted(key for key in saved.keys() | now.keys() if saved.get(key) != now.get(key))
    refused = [key for key in keys if not any(key == may or key.startswith(f"{may}.") for may in allowed)]
    if refused:
        shown = "; ".join(f"{key}: {saved.get(key)!r} there, {now.get(key)!r} here" for key in refused[:8])
        raise UserError(
            "C202",
            f"the checkpoint was made with another recipe ({len(refused)} key{'s differ' if len(refused) > 1 else ' differs'})",
            shown,
            "resume with the same recipe, or accept with " + " ".join(f"--allow-changed {key}" for key in refused[:8]),
        )


def refuse_other_classes(saved: list[str], now: tuple[str, ...]) -> None:
    """Outputs are classes by position; other classes would make every label another one.

    Raises:
        UserError: C203.
    """
    if list(saved) != list(now):
        differing = [
            f"{index}: {a!r} there, {b!r} here" for index, (a, b) in enumerate(zip(saved, now, strict=False)) if a != b
        ]
        why = "; ".join(differing[:4]) or f"{len(saved)} classes there, {len(now)} here"
        raise UserError(
            "C203",
            "the checkpoint knows other classes than the data",
            why,
            "use the data set that the model was trained on",
        )


def load_weights(model: nn.Module, weights: dict[str, Any], name: str) -> None:
    """Load weights into the model called `name`.

    Raises:
        UserError: C201 names or shapes are those of another model.
    """
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reasons = " ".join(line.strip() for line in str(error).splitlines()[1:3])
        raise UserError(
            "C201",
            "the checkpoint is of another model",
            reasons[:300],
            f"use the recipe or --model it was trained with, not {name}",
        ) from None
