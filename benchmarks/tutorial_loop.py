"""The Fashion-MNIST tutorial's way of training, written for the benchmark: `torchrun tutorial_loop.py ROOT ANSWER [STEPS]`.

torchvision's FashionMNIST in ROOT, ToTensor on single samples, a DataLoader with one worker, DistributedSampler,
DDP over gloo, plain SGD, global batch 512. The first epoch warms up; rank 0 writes the seconds of the second.
With STEPS an epoch ends after so many.
"""

from __future__ import annotations

import struct
import sys
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor

from unisono.data.idx import open_fashion_mnist


def lay_out(root: Path) -> None:
    """The Fashion-MNIST at hand in plain IDX files, where torchvision looks for them."""
    folder = root / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    sets = open_fashion_mnist(None)
    for part, source in (("train", sets.train), ("t10k", sets.val)):
        count, (height, width) = len(source.labels), source.images.shape[-2:]
        images = struct.pack(">IIII", 2051, count, height, width) + source.images.tobytes()
        (folder / f"{part}-images-idx3-ubyte").write_bytes(images)
        labels = struct.pack(">II", 2049, count) + source.labels.astype("uint8").tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(labels)


def main(root: Path, answer: Path, most: int | None = None) -> None:
    """Two epochs; the second counts."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    samples = FashionMNIST(root, train=True, transform=ToTensor())
    sampler: DistributedSampler[Any] = DistributedSampler(samples)
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
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:4]))
