"""Memory that every rank of one machine maps, so that CPU ranks add each other's gradients without sending them.

A block is an anonymous file of the kernel (memfd), handed to the other ranks over Unix sockets of the abstract
namespace: neither has a name that could be left behind, and both end with the last process that holds them, however
that process ends. Blocks are not bound by the size of /dev/shm.

The sockets then say who is ready. gloo could say it too, but it hears through a thread of its own, which on a machine
with as many ranks as cores waits for a core: each such wait cost milliseconds (docs/log.md, 2026-12-07).
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from unisono.distributed.collectives import any_rank, gather_objects

_FLOAT_BYTES, _RANK_BYTES = 4, 4
_READY = b"r"


@dataclass(frozen=True, slots=True)
class _Offer:
    """Where a rank listens, and the password without which it talks to nobody."""

    address: bytes
    password: bytes
    floats: int


class SharedBlocks:
    """One fp32 block a rank, every one mapped by every rank, and a way to wait for each other."""

    def __init__(self, blocks: Sequence[Tensor], peers: dict[int, socket.socket], rank: int, timeout_s: float) -> None:
        self.blocks = list(blocks)
        """In rank order, zeroed at first."""
        self._peers = peers
        self._rank = rank
        self._timeout_s = timeout_s

    def meet(self) -> None:
        """Wait until every rank is here. Collective.

        A dissemination barrier: in round k each rank hears from the one 2^k before it.

        Raises:
            RuntimeError: a rank is gone, or did not come in time; it is named.
        """
        world_size, distance = len(self.blocks), 1
        while distance < world_size:
            after, before = (self._rank + distance) % world_size, (self._rank - distance) % world_size
            try:
                self._peers[after].sendall(_READY)
            except OSError as error:
                raise RuntimeError(f"Connection closed by peer: rank {after} is gone") from error
            try:
                heard = self._peers[before].recv(1)
            except TimeoutError as error:
                raise RuntimeError(f"Timed out waiting {self._timeout_s:g} s for rank {before}") from error
            except OSError:
                heard = b""
            if not heard:
                raise RuntimeError(f"Connection closed by peer: rank {before} is gone")
            distance *= 2


def share_blocks(floats: int, *, rank: int, world_size: int, timeout_s: float) -> SharedBlocks | None:
    """Blocks of the sizes that the ranks ask for.

    None on every rank where some rank cannot map another's: ranks on several machines or in several containers, a
    system other than Linux, too little memory. Collective.
    """
    peers: dict[int, socket.socket] = {}
    blocks: list[Tensor] | None = None
    with ExitStack() as open_till_mapped:
        own = _reserve(floats)
        listener, offer = None, None
        if own is not None:
            open_till_mapped.callback(os.close, own)
            listener = open_till_mapped.enter_context(_listen(world_size, timeout_s))
            offer = _Offer(listener.getsockname(), secrets.token_bytes(16), floats)
        offers = [one for one in gather_objects(offer) if one is not None]
        called = len(offers) == world_size and _call(offers[:rank], rank, peers, timeout_s)
        # Every call that could be made waits at its listener now, so nobody waits for one that never comes.
        if not any_rank(not called, torch.device("cpu")) and listener is not None and own is not None:
            _answer(listener, offers[rank].password, world_size - 1, peers, timeout_s)
            blocks = _swap_blocks(own, offers, rank, peers)
            if any_rank(blocks is None, torch.device("cpu")):
                blocks = None
    if blocks is None:
        for line in peers.values():
            line.close()
        return None
    return SharedBlocks(blocks, peers, rank, timeout_s)


def _reserve(floats: int) -> int | None:
    """A descriptor of new zeroed memory, or None where there is not enough or no such call."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("unisono")
    except OSError:
        return None
    try:
        # Now, for a page that cannot be had later would end the process with SIGBUS.
        os.posix_fallocate(descriptor, 0, floats * _FLOAT_BYTES)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _listen(calls: int, timeout_s: float) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(timeout_s)
    listener.bind("")  # the kernel chooses an abstract address
    listener.listen(calls)
    return listener


def _call(lower: Sequence[_Offer], rank: int, peers: dict[int, socket.socket], timeout_s: float) -> bool:
    """Connect to every lower rank; False when one cannot be reached: it is on another machine."""
    for peer, offer in enumerate(lower):
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(timeout_s)
        peers[peer] = line
        try:
            line.connect(offer.address)
            line.sendall(offer.password + rank.to_bytes(_RANK_BYTES))
        except OSError:
            return False
    return True


def _answer(
    listener: socket.socket, password: bytes, wanted: int, peers: dict[int, socket.socket], timeout_s: float
) -> None:
    """Take the calls of all higher ranks, and of nobody else, until there are as many peers as wanted."""
    while len(peers) < wanted:
        line, _ = listener.accept()
        line.settimeout(timeout_s)
        said = line.recv(len(password) + _RANK_BYTES, socket.MSG_WAITALL)
        if secrets.compare_digest(said[: len(password)], password):
            peers[int.from_bytes(said[len(password) :])] = line
        else:
            line.close()


def _swap_blocks(own: int, offers: Sequence[_Offer], rank: int, peers: dict[int, socket.socket]) -> list[Tensor] | None:
    """Hand the own block to every peer and map theirs; None where the system refuses one."""
    blocks: list[Tensor] = []
    try:
        for line in peers.values():
            socket.send_fds(line, [_READY], [own])
        for peer, offer in enumerate(offers):
            descriptors = [os.dup(own)] if peer == rank else socket.recv_fds(peers[peer], 1, 1)[1]
            for descriptor in descriptors:
                try:
                    blocks.append(_map(descriptor, offer.floats))
                finally:
                    os.close(descriptor)
    except (OSError, RuntimeError):
        return None
    return blocks if len(blocks) == len(offers) else None


def _map(descriptor: int, floats: int) -> Tensor:
    return torch.from_file(f"/proc/self/fd/{descriptor}", shared=True, size=floats, dtype=torch.float32)
