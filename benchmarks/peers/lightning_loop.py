"""Lightning's way of training: a LightningModule and its Trainer at their defaults, progress bar and logger included.

The loader is the user's in Lightning; four workers, as in its ImageNet example.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import lightning
import torch
from common import Watch, arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader


class Classifier(lightning.LightningModule):
    """Cross-entropy and SGD."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """One batch."""
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """SGD with momentum."""
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


class Watching(lightning.Callback):
    """Stops the trainer when the watch has enough."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._told = watch, False

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: Any) -> None:
        """A step is over."""
        if self._watch.step_done() and not self._told:
            self._told, trainer.should_stop = True, True
            self._watch.tell(lightning=lightning.__version__)


def main() -> int:
    """Train until the watch has enough."""
    task, watch, _ = arguments(__doc__)
    images = task.images(task.transform())
    loader = DataLoader(images, task.batch, shuffle=True, num_workers=4)
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            accelerator="cpu", max_epochs=1000, default_root_dir=folder, callbacks=[Watching(watch)]
        )
        trainer.fit(Classifier(task.build(len(images.classes))), loader)
    return 0


if __name__ == "__main__":
    sys.exit(main())
