"""Accelerate's way of training: the loop of its cv_example.py, four workers as there."""

from __future__ import annotations

import sys

import accelerate
import torch
from accelerate import Accelerator
from common import arguments
from torch import nn
from torch.utils.data import DataLoader


def main() -> int:
    """Train until the watch has enough."""
    task, watch, _ = arguments(__doc__)
    accelerator = Accelerator(cpu=True)
    images = task.images(task.transform())
    loader = DataLoader(images, task.batch, shuffle=True, num_workers=4)
    model = task.build(len(images.classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=100_000)
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    while True:
        model.train()
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if watch.step_done():
                watch.tell(accelerate=accelerate.__version__)
                return 0


if __name__ == "__main__":
    sys.exit(main())
