"""Images: sources, order, batches, augmentation."""

from unisono.data.base import Batch, Batches, DataSets
from unisono.data.batches import open_batches
from unisono.data.mixing import mix_batch
from unisono.data.open import open_data_sets

__all__ = ["Batch", "Batches", "DataSets", "mix_batch", "open_batches", "open_data_sets"]
