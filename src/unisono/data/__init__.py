"""Images: sources, order, batches, augmentation."""

from unisono.data.base import Batch, Batches, DataSets
from unisono.data.open import mix_batch, open_batches, open_data_sets

__all__ = ["Batch", "Batches", "DataSets", "mix_batch", "open_batches", "open_data_sets"]
