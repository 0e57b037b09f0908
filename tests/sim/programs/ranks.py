"""What every rank of a simulated job checks against gloo; run by tests/sim/test_ranks.py, a process a device."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch_npu  # noqa: F401  # as a user's script does
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def values(*shape: int, seed: int, device: str, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """This rank's own numbers."""
    generator = torch.Generator().manual_seed(100 * seed + RANK)
    return (torch.randn(*shape, generator=generator) * 10).to(dtype).to(device)


def collective(function: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    """Run on npu over hccl and on cpu over gloo, and compare."""
    COLLECTIVES[function.__name__] = function
    return function


COLLECTIVES: dict[str, Callable[[str, Any], Any]] = {}


@collective
def all_reduce(device: str, group: Any) -> list[torch.Tensor]:
    results = []
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX):
        for dtype in (torch.float32, torch.int32, torch.int64, torch.bfloat16, torch.float16):
            x = values(5, 3, seed=1, device=device, dtype=dtype)
            dist.all_reduce(x, operation, group=group)
            results.append(x)
    return results


@collective
def all_reduce_in_the_background(device: str, group: Any) -> torch.Tensor:
    x, y = values(5, seed=2, device=device), values(5, seed=3, device=device)
    work = dist.all_reduce(x, group=group, async_op=True)
    future = dist.all_reduce(y, group=group, async_op=True).get_future()
    work.wait()
    doubled = future.then(lambda done: done.value()[0] * 2).wait()
    return torch.cat([x, y, doubled])


@collective
def broadcast(device: str, group: Any) -> torch.Tensor:
    x = values(5, seed=4, device=device)
    dist.broadcast(x, WORLD - 1, group=group)
    return x


@collective
def reduce(device: str, group: Any) -> torch.Tensor:
    x = values(5, seed=5, device=device)
    dist.reduce(x, 0, group=group)
    return x if RANK == 0 else torch.zeros(1)


@collective
def all_gather(device: str, group: Any) -> torch.Tensor:
    listed = [torch.empty(4, device=device) for _ in range(WORLD)]
    dist.all_gather(listed, values(4, seed=6, device=device), group=group)
    flat = torch.empty(4 * WORLD, device=device)
    dist.all_gather_into_tensor(flat, values(4, seed=7, device=device), group=group)
    return torch.cat([*listed, flat])


@collective
def gather_and_scatter(device: str, group: Any) -> torch.Tensor:
    gathered = [torch.zeros(4, device=device) for _ in range(WORLD)]
    dist.gather(values(4, seed=8, device=device), gathered if RANK == 0 else None, 0, group=group)
    part = torch.empty(4, device=device)
    dist.scatter(part, [values(4, seed=20 + i, device=device) for i in range(WORLD)] if RANK == 0 else None, 0, group=group)
    return torch.cat([*gathered, part])


@collective
def reduce_scatter(device: str, group: Any) -> torch.Tensor:
    flat, listed = torch.empty(4, device=device), torch.empty(4, device=device)
    dist.reduce_scatter_tensor(flat, values(4 * WORLD, seed=9, device=device), group=group)
    dist.reduce_scatter(listed, list(values(4 * WORLD, seed=10, device=device).chunk(WORLD)), group=group)
    return torch.cat([flat, listed])


@collective
def all_to_all(device: str, group: Any) -> torch.Tensor:
    flat = torch.empty(4 * WORLD, device=device)
    dist.all_to_all_single(flat, values(4 * WORLD, seed=11, device=device), group=group)
    if device == "cpu":  # gloo has no list form: the flat one says what to expect
        return torch.cat([flat, flat])
    listed = [torch.empty(4, device=device) for _ in range(WORLD)]
    dist.all_to_all(listed, list(values(4 * WORLD, seed=11, device=device).chunk(WORLD)), group=group)
    return torch.cat([flat, *listed])


@collective
def send_and_receive(device: str, group: Any) -> torch.Tensor:
    received = torch.empty(3, device=device)
    operations = [
        dist.P2POp(dist.isend, values(3, seed=12, device=device), (RANK + 1) % WORLD, group=group),
        dist.P2POp(dist.irecv, received, (RANK - 1) % WORLD, group=group),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return received


@collective
def objects(device: str, group: Any) -> list[Any]:
    gathered: list[Any] = [None] * WORLD
    dist.all_gather_object(gathered, {"rank": RANK}, group=group)
    told = [("from", RANK)]
    dist.broadcast_object_list(told, 1, group=group)
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [f"for {i}" for i in range(WORLD)] if RANK == 0 else None, 0, group=group)
    collected = [None] * WORLD if RANK == 0 else None
    dist.gather_object(RANK, collected, 0, group=group)
    dist.barrier(group=group)
    return [gathered, told, mine, collected]


@collective
def functional(device: str, group: Any) -> torch.Tensor:
    from torch.distributed import _functional_collectives as functional_collectives

    return functional_collectives.all_reduce(values(3, seed=13, device=device), "sum", group) + 0


def equal(first: Any, second: Any) -> bool:
    """Equality of tensors wherever they are, and of anything else."""
    if isinstance(first, torch.Tensor):
        return torch.equal(first.cpu(), second.cpu())
    if isinstance(first, list):
        return len(first) == len(second) and all(map(equal, first, second))
    return bool(first == second)


def check_collectives(gloo: Any) -> None:
    """Every collective gives the same on hccl as on gloo."""
    for name, function in COLLECTIVES.items():
        assert equal(function("npu", dist.group.WORLD), function("cpu", gloo)), name
    pair = dist.new_group([0, 1])
    if RANK < 2:
        x = torch.ones(2, device="npu")
        dist.all_reduce(x, group=pair)
        assert x.tolist() == [2, 2]


def train(model: nn.Module, device: str, **ddp: Any) -> list[torch.Tensor]:
    """A few DDP steps; the parameters after them."""
    parallel = DistributedDataParallel(model, **ddp)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(3):
        images = values(4, 3, 8, 8, seed=30 + step, device=device)
        with parallel.no_sync() if step == 1 else torch.enable_grad():
            loss = F.cross_entropy(parallel(images), torch.arange(4, device=device) % 5)
            loss.backward()
        if step != 1:
            optimizer.step()
            optimizer.zero_grad()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def check_ddp(gloo: Any) -> None:
    """DDP over hccl ends at the same bits as over gloo, and all ranks agree."""
    torch.manual_seed(5)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
    expected = train(copy.deepcopy(model), "cpu", process_group=gloo)
    found = train(model.npu(), "npu", device_ids=[RANK])
    assert all(map(torch.equal, expected, found))
    for parameter in found:
        everyone = [torch.empty_like(parameter) for _ in range(WORLD)]
        dist.all_gather(everyone, parameter, group=gloo)
        assert all(torch.equal(parameter, other) for other in everyone)


class OverTwo(nn.Module):
    """A module spread over two NPUs of one process."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4).npu(RANK)
        self.second = nn.Linear(4, 5).npu(WORLD + RANK)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x.to(self.first.weight.device)).to(self.second.weight.device))


def check_ddp_over_several_devices_of_a_process() -> None:
    """One process drives two NPUs, in DDP with the others."""
    torch.manual_seed(6)
    parallel = DistributedDataParallel(OverTwo())
    parallel(values(4, 3, seed=40, device="cpu")).sum().backward()
    gradient = parallel.module.second.weight.grad
    everyone: list[Any] = [None] * WORLD
    dist.all_gather_object(everyone, gradient.cpu())
    assert all(torch.equal(everyone[0], other) for other in everyone)


def check_sync_batch_norm() -> None:
    """Statistics over all ranks: the same as one process with the whole batch."""
    whole = torch.randn(4 * WORLD, 3, 5, 5, generator=torch.Generator().manual_seed(7))
    plain = nn.BatchNorm2d(3)
    expected_in = whole.clone().requires_grad_()
    plain(expected_in).square().mul(torch.arange(4 * WORLD).view(-1, 1, 1, 1)).sum().backward()
    synced = DistributedDataParallel(nn.SyncBatchNorm(3).npu(), device_ids=[RANK])
    mine = slice(4 * RANK, 4 * RANK + 4)
    part = whole[mine].npu().requires_grad_()
    weights = torch.arange(4 * WORLD)[mine].view(-1, 1, 1, 1).npu()
    synced(part).square().mul(weights).sum().backward()
    torch.testing.assert_close(part.grad.cpu(), expected_in.grad[mine], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(synced.module.running_var.cpu(), plain.running_var)


def main() -> None:
    """All checks of one rank."""
    torch.npu.set_device(RANK)
    dist.init_process_group("hccl")
    gloo = dist.new_group(backend="gloo")
    check_collectives(gloo)
    check_ddp(gloo)
    check_ddp_over_several_devices_of_a_process()
    check_sync_batch_norm()
    print("all checks passed")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
