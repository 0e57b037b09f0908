"""torchvision's reference loop for classification: its train_one_epoch with its meters and its default of 16 workers.

The references are not part of the package; the loop below follows references/classification/train.py and presets.py.
"""

from __future__ import annotations

import sys
import time
from collections import deque

import torch
import torchvision
from common import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler
from torchvision import transforms
from torchvision.transforms.functional import InterpolationMode


class Smoothed:
    """The references' SmoothedValue: a window of figures with its mean."""

    def __init__(self, window: int = 20) -> None:
        self.window: deque[float] = deque(maxlen=window)
        self.total, self.count = 0.0, 0

    def update(self, value: float, number: int = 1) -> None:
        """Add one."""
        self.window.append(value)
        self.count += number
        self.total += value * number


def accuracy(output: Tensor, target: Tensor, topk: tuple[int, ...]) -> list[Tensor]:
    """Percent of targets among the k greatest, as the references count them."""
    with torch.inference_mode():
        _, predicted = output.topk(max(topk), 1, True, True)
        correct = predicted.t().eq(target[None])
        return [correct[:k].flatten().sum(dtype=torch.float32) * (100.0 / target.size(0)) for k in topk]


def main() -> int:
    """Train until the watch has enough."""
    task, watch, _ = arguments(__doc__)
    crop = (
        transforms.RandomCrop(32, padding=4)
        if task.is_cifar
        else transforms.RandomResizedCrop(task.size, interpolation=InterpolationMode.BILINEAR, antialias=True)
    )
    last = [
        transforms.PILToTensor(),
        transforms.ConvertImageDtype(torch.float),
        transforms.Normalize(*task.mean_and_std),
    ]
    images = task.images(transforms.Compose([crop, transforms.RandomHorizontalFlip(), *last]))
    loader = DataLoader(images, task.batch, sampler=RandomSampler(images), num_workers=16, pin_memory=False)
    model = task.build(len(images.classes))
    criterion, device = nn.CrossEntropyLoss(), torch.device("cpu")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    meters = {name: Smoothed() for name in ("loss", "lr", "acc1", "acc5", "img/s")}
    while True:
        for image, target in loader:
            started = time.time()
            image, target = image.to(device), target.to(device)
            output = model(image)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            acc1, acc5 = accuracy(output, target, topk=(1, 5))
            meters["loss"].update(loss.item())
            meters["lr"].update(optimizer.param_groups[0]["lr"])
            meters["acc1"].update(acc1.item(), image.shape[0])
            meters["acc5"].update(acc5.item(), image.shape[0])
            meters["img/s"].update(image.shape[0] / (time.time() - started))
            if watch.step_done():
                watch.tell(torchvision=torchvision.__version__)
                return 0


if __name__ == "__main__":
    sys.exit(main())
