"""Runs a function on several ranks with a time limit; a failing rank's own traceback is the test's failure."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

from helpers.platform import BACKEND, SIMULATED

CONTEXT = multiprocessing.get_context("forkserver")
# Imported once, in the server that ranks are forked from; importing them anew costs each rank seconds.
CONTEXT.set_forkserver_preload(
    ["unisono.train.run", "unisono.platforms.cpu", "torch.utils.tensorboard", "timm.optim", "timm.data"]
)


def run_ranks(world_size: int, function: Callable[..., Any], *arguments: Any, timeout_s: float = 60) -> list[Any]:
    """What `function(rank, world_size, *arguments)` returned on each rank, in rank order.

    The function must live in an importable module (tests/helpers), so that a fresh process finds it.
    """
    with tempfile.TemporaryDirectory() as folder:
        ends, processes = [], []
        for rank in range(world_size):
            mine, theirs = CONTEXT.Pipe(duplex=False)
            process = CONTEXT.Process(
                target=_rank,
                args=(rank, world_size, str(Path(folder) / "store"), theirs, function, arguments),
                daemon=False,
            )
            process.start()
            theirs.close()
            ends.append(mine)
            processes.append(process)
        try:
            return _collect(ends, timeout_s)
        finally:
            for process in processes:
                process.kill()
                process.join()


def _collect(ends: list[Connection], timeout_s: float) -> list[Any]:
    results: dict[int, Any] = {}
    waiting: dict[Any, int] = {end: rank for rank, end in enumerate(ends)}
    failures: list[str] = []
    while waiting:
        ready = wait(list(waiting), timeout_s)
        if not ready:
            failures.append(f"ranks {sorted(waiting.values())} did not answer within {timeout_s} s")
            break
        for end in ready:
            rank = waiting.pop(end)
            try:
                ok, value = end.recv()
            except EOFError:
                ok, value = False, "the process ended without an answer"
            if ok:
                results[rank] = value
            else:
                failures.append(f"rank {rank}:\n{value}")
        if failures:
            break
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)
    return [results[rank] for rank in range(len(ends))]


def _rank(
    rank: int, world_size: int, store: str, answer: Connection, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    if SIMULATED:
        torch.npu.set_device(rank)
    try:
        if world_size > 1:
            dist.init_process_group(BACKEND, init_method=f"file://{store}", rank=rank, world_size=world_size)
        answer.send((True, function(rank, world_size, *arguments)))
        if world_size > 1:
            dist.barrier()
            dist.destroy_process_group()
    except BaseException:
        answer.send((False, traceback.format_exc()))
