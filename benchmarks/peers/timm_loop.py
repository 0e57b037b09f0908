"""timm's way of training: what its train.py does for a step, with timm's loader, optimizer and meters at their defaults.

Its training script is not part of the package; the loop below follows train_one_epoch of timm 1.0. Colour jitter, on by
default there, is off: no other loop of the benchmark has it.
"""

from __future__ import annotations

import sys

import timm
import torch
from common import arguments
from timm.data import create_loader
from timm.data.transforms import ToNumpy
from timm.optim import create_optimizer_v2
from timm.scheduler import create_scheduler_v2
from timm.utils import AverageMeter
from torch import nn
from torchvision import transforms


def main() -> int:
    """Train until the watch has enough."""
    task, watch, _ = arguments(__doc__)
    images = task.images()
    device = torch.device("cpu")
    mean, std = task.mean_and_std
    loader = create_loader(
        images,
        input_size=(3, task.size, task.size),
        batch_size=task.batch,
        is_training=True,
        use_prefetcher=True,
        hflip=0.5,
        color_jitter=None,
        interpolation="random",
        mean=mean,
        std=std,
        num_workers=4,
        device=device,
    )
    if task.is_cifar:
        images.transform = transforms.Compose(
            [transforms.RandomCrop(32, padding=4), transforms.RandomHorizontalFlip(), ToNumpy()]
        )
    model = task.build(len(images.classes))
    optimizer = create_optimizer_v2(model, opt="sgd", lr=0.01, momentum=0.9, weight_decay=2e-5)
    scheduler, _ = create_scheduler_v2(optimizer, sched="cosine", num_epochs=300, updates_per_epoch=len(loader))
    criterion = nn.CrossEntropyLoss()
    losses, updates = AverageMeter(), 0
    optimizer.zero_grad()
    while True:
        for inputs, targets in loader:
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.update(loss.item(), inputs.size(0))
            optimizer.zero_grad()
            updates += 1
            scheduler.step_update(num_updates=updates, metric=losses.avg)
            if watch.step_done():
                watch.tell(timm=timm.__version__)
                return 0


if __name__ == "__main__":
    sys.exit(main())
