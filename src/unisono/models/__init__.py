"""Networks by name."""

from unisono.models.registry import build_model, model_names

__all__ = ["build_model", "model_names"]
