"""Functions of torch_npu.contrib."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_npu._missing import also_known_as, missing_names

__all__ = ["matmul_transpose", "npu_fast_condition_index_put", "roll"]


def roll(x: Tensor, shifts: int | list[int], dims: int | list[int]) -> Tensor:
    """torch.roll."""
    return torch.roll(x, shifts, dims)


def matmul_transpose(first: Tensor, second: Tensor) -> Tensor:
    """first times the transpose of second's last two dimensions."""
    return torch.matmul(first, second.transpose(-2, -1))


def npu_fast_condition_index_put(x: Tensor, condition: Tensor, value: float) -> Tensor:
    """x with `value` where the condition holds.

    Raises:
        TypeError: a condition that is not bool.
    """
    if condition.dtype is not torch.bool:
        raise TypeError("the condition must be a tensor of bool")
    return x.masked_fill_(condition, value)


def dropout_with_byte_mask(input1: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Dropout."""
    return F.dropout(input1, p, training, inplace)


def fuse_add_softmax_dropout(
    training: bool,
    dropout: torch.nn.Module,
    attn_mask: Tensor,
    attn_scores: Tensor,
    attn_head_size: int,
    p: float = 0.5,
    dim: int = -1,
) -> Tensor:
    """Scores over the root of the head's size, plus the mask, through softmax and dropout."""
    scores = attn_scores / attn_head_size**0.5 + attn_mask
    return F.dropout(torch.softmax(scores, dim), p, training)


__getattr__ = missing_names(__name__)
also_known_as(__name__, "index_op", "npu_functional")
