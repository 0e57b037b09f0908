"""A step on the simulated NPU over one on the CPU: same threads, alternating, in one process.

    python tests/sim/measure_speed.py [THREADS] [wall|cpu]

`wall` (default) is elapsed time; `cpu` is the thread's processor time, for a machine that is busy with other work.
"""

from __future__ import annotations

import copy
import statistics
import sys
import time
from collections.abc import Callable

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from unisono.simulator import activate

WARMUP = 3


def mlp() -> nn.Module:
    """The tutorial's perceptron."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
    )


def step(model: nn.Module, optimizer: torch.optim.Optimizer, images: torch.Tensor, labels: torch.Tensor) -> None:
    """One update."""
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    optimizer.step()


def measure(
    name: str, make: Callable[[], nn.Module], images: torch.Tensor, steps: int, clock: Callable[[], float]
) -> None:
    """Print both times and their ratio."""
    labels = torch.arange(len(images)) % 10
    on_cpu = make()
    cases = {
        "cpu": (on_cpu, images, labels),
        "npu": (copy.deepcopy(on_cpu).npu(), images.npu(), labels.npu()),
    }
    optimizers = {key: torch.optim.SGD(case[0].parameters(), 0.01, momentum=0.9) for key, case in cases.items()}
    seconds: dict[str, list[float]] = {key: [] for key in cases}
    for i in range(steps + WARMUP):
        for key in ("cpu", "npu") if i % 2 else ("npu", "cpu"):
            model, x, y = cases[key]
            started = clock()
            step(model, optimizers[key], x, y)
            if i >= WARMUP:
                seconds[key].append(clock() - started)
    cpu, npu = (statistics.median(seconds[key]) for key in ("cpu", "npu"))
    print(f"{name}: cpu {cpu * 1e3:.2f} ms, simulated {npu * 1e3:.2f} ms, ratio of medians {npu / cpu:.3f}, n={steps}")


def main() -> None:
    """The two cases."""
    activate(devices=1)
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    clock = time.thread_time if "cpu" in sys.argv[2:] else time.perf_counter
    print(f"threads {torch.get_num_threads()}, {'processor' if clock is time.thread_time else 'elapsed'} time")
    measure("mlp, batch 64", mlp, torch.randn(64, 1, 28, 28), 600, clock)
    measure("resnet50 32x32, batch 16", lambda: torchvision.models.resnet50(num_classes=10), torch.randn(16, 3, 32, 32), 10, clock)


if __name__ == "__main__":
    main()
