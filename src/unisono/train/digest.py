"""One sha256 over a tree of tensors and plain values: equal digests mean equal bytes."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor


def digest_of(tree: Any) -> str:
    """Hex sha256 of dicts, lists, tensors, numbers, strings, booleans and None, independent of how they were made.

    Dicts are taken in sorted order of their keys; a tensor counts by type, shape and bytes in row-major order.

    Raises:
        TypeError: anything else, since its bytes would not be defined.
    """
    sha = hashlib.sha256()
    _feed(sha, tree)
    return sha.hexdigest()


def _feed(sha: Any, value: Any) -> None:
    if isinstance(value, Tensor):
        plain = value.detach().cpu().contiguous()
        sha.update(f"T{plain.dtype}{tuple(plain.shape)}".encode())
        if plain.numel():
            sha.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(value, Mapping):
        sha.update(f"D{len(value)}".encode())
        for key in sorted(value, key=lambda k: (type(k).__name__, k)):
            _feed(sha, key)
            _feed(sha, value[key])
    elif isinstance(value, (list, tuple)):
        sha.update(f"L{len(value)}".encode())
        for item in value:
            _feed(sha, item)
    elif isinstance(value, bool) or value is None:
        sha.update(f"B{value}".encode())
    elif isinstance(value, int):
        sha.update(f"I{value}".encode())
    elif isinstance(value, float):
        sha.update(b"F" + struct.pack("<d", value))
    elif isinstance(value, str):
        raw = value.encode()
        sha.update(f"S{len(raw)}".encode() + raw)
    else:
        raise TypeError(f"a {type(value).__name__} has no digest")
