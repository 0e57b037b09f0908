"""The Fashion-MNIST tutorial's way of training, written for the benchmark: `torchrun tutorial_loop.py ANSWER [STEPS]`.

A DataLoader over single samples with ToTensor, one worker, DistributedSampler, DDP over gloo, plain SGD, global batch 512.
The first epoch warms up; rank 0 writes the seconds of the second. With STEPS an epoch ends after so many.
"""

from __future__ import annotations

import sys
import time
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler
from torchvision.transforms import ToTensor

from unisono.data.idx import open_fashion_mnist


class Samples(Dataset[tuple[torch.Tensor, int]]):
    """Single images through ToTensor, as torchvision's data set gives them."""

    def __init__(self) -> None:
        source = open_fashion_mnist(None).train
        self._images, self._labels, self._transform = source.images[:, 0], source.labels, ToTensor()

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return self._transform(self._images[index]), int(self._labels[index])


def main(answer: Path, most: int | None = None) -> None:
    """Two epochs; the second counts."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    samples = Samples()
    sampler: DistributedSampler[tuple[torch.Tensor, int]] = DistributedSampler(samples)
    loader = DataLoader(
        samples, batch_size=512 // dist.get_world_size(), num_workers=1, sampler=sampler, drop_last=True
    )
    layers = [nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=1e-3), nn.CrossEntropyLoss()
    seconds = 0.0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        dist.barrier()
        started = time.perf_counter()
        for images, labels in islice(loader, most):
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        dist.barrier()
        seconds = time.perf_counter() - started
    if dist.get_rank() == 0:
        answer.write_text(str(seconds))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:3]))
