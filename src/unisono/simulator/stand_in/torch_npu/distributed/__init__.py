"""The backend hccl, and torch_npu's own collectives over it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from torch_npu._missing import also_known_as, missing_names
from torch_npu._runtime import BACKEND, make_process_group

__all__ = [
    "all_gather_into_tensor_uneven",
    "is_available",
    "is_hccl_available",
    "reduce_scatter_tensor_uneven",
    "register_backend",
]


def is_available() -> bool:
    """Whether torch was built with its distributed package."""
    return dist.is_available()


def is_hccl_available() -> bool:
    """Whether init_process_group("hccl") works."""
    return dist.is_available() and dist.is_gloo_available()


class ProcessGroupHCCL:
    """The name that scripts compare with; options are accepted and kept."""

    class Options:
        """Options of a group: a stream's priority, HCCL's own settings."""

        def __init__(self) -> None:
            self.is_high_priority_stream = False
            self.op_timeout = timedelta(minutes=30)
            self.hccl_config: dict[str, Any] = {}


def _make(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
    return make_process_group(store, rank, size, timeout)


def register_backend() -> None:
    """Tell torch.distributed of hccl, once."""
    if not is_hccl_available() or "hccl" in dist.Backend.backend_list:
        return
    dist.Backend.register_backend("hccl", _make, devices=[BACKEND])
    dist.is_hccl_available = is_hccl_available  # type: ignore[attr-defined]  # the name that torch_npu adds
    for module in (dist, dist.distributed_c10d):
        module.ProcessGroupHCCL = ProcessGroupHCCL  # type: ignore[attr-defined]  # the same


def all_gather_into_tensor_uneven(
    output: torch.Tensor,
    input: torch.Tensor,  # torch_npu's name
    output_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Gather row blocks of different heights into one tensor; `output_split_sizes` are the ranks' heights."""
    if output_split_sizes is None:
        return dist.all_gather_into_tensor(output, input, group=group, async_op=async_op)
    parts = list(output.split(output_split_sizes))
    works = [
        dist.broadcast(part.copy_(input) if rank == dist.get_rank(group) else part, group_src=rank, group=group, async_op=True)
        for rank, part in enumerate(parts)
    ]
    return _finish(works, async_op)


def reduce_scatter_tensor_uneven(
    output: torch.Tensor,
    input: torch.Tensor,  # torch_npu's name
    input_split_sizes: list[int] | None = None,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Reduce row blocks of different heights, each to its rank; `input_split_sizes` are the ranks' heights."""
    if input_split_sizes is None:
        return dist.reduce_scatter_tensor(output, input, op=op, group=group, async_op=async_op)
    mine = dist.get_rank(group)
    blocks = [block.clone() for block in input.split(input_split_sizes)]
    works = [
        dist.reduce(block, group_dst=rank, op=op, group=group, async_op=True) for rank, block in enumerate(blocks)
    ]
    _finish(works, async_op=False)
    output.copy_(blocks[mine])
    return _finish(works, async_op)


def _finish(works: list[Any], async_op: bool) -> Any:
    if async_op:
        return works[-1]
    for work in works:
        work.wait()
    return None


__getattr__ = missing_names(__name__)
also_known_as(__name__, "distributed_c10d")
