"""torch_npu's own operators that training scripts of image classifiers use, written over torch's.

Most are also torch.ops.npu.NAME, under the real schema; all have autograd. Those that are not here raise "not simulated".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from torch_npu._constants import Format
from torch_npu._missing import real_names
from torch_npu._runtime import extension

_made: dict[str, Callable[..., Any]] = {}
_library = torch.library.Library("npu", "FRAGMENT")


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function under its name and the real schema."""
    name = function.__name__
    schema = real_names()[f"torch_npu.{name}"][1].split(" | ")[0]
    _library.define(schema.removeprefix("npu::"))
    _library.impl(name, function, "CompositeImplicitAutograd")
    _made[name] = getattr(torch.ops.npu, name)
    return function


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose schema has overloads, or types that torch.ops would turn into numbers."""
    _made[function.__name__] = function
    return function


def find(name: str) -> Callable[..., Any] | None:
    """The operator of that name; None when it is not simulated."""
    return _made.get(name)


def get_npu_format(tensor: Tensor) -> Format:
    """Every simulated tensor is in ND (NCHW for four dimensions, as torch_npu says it)."""
    return Format.NCHW if tensor.dim() == 4 else Format.ND


@_plain
def get_storage_size(input: Tensor) -> int:  # the schema's name, here and below
    return input.untyped_storage().nbytes() // input.element_size()


@_plain
def npu_format_cast(input: Tensor, acl_format: int | Tensor, **_: Any) -> Tensor:
    return input


@_plain
def npu_format_cast_(input: Tensor, acl_format: int | Tensor, **_: Any) -> Tensor:
    return input


@_plain
def npu_dtype_cast(input: Tensor, dtype: torch.dtype, *_: Any) -> Tensor:
    return input.to(dtype)


@_operator
def npu_transpose(input: Tensor, perm: list[int], require_contiguous: bool = True) -> Tensor:
    moved = input.permute(perm)
    return moved.contiguous() if require_contiguous else moved


@_operator
def npu_broadcast(input: Tensor, size: list[int]) -> Tensor:
    return input.expand(size).contiguous()


@_operator
def npu_slice(input: Tensor, offsets: list[int], size: list[int]) -> Tensor:
    return input[tuple(slice(start, start + length) for start, length in zip(offsets, size, strict=True))].clone()


@_operator
def npu_reshape(input: Tensor, shape: list[int], can_refresh: bool = False) -> Tensor:
    return input.reshape(shape)


@_operator
def npu_confusion_transpose(input: Tensor, perm: list[int], shape: list[int], transpose_first: bool) -> Tensor:
    if transpose_first:
        return input.permute(perm).contiguous().reshape(shape)
    return input.reshape(shape).permute(perm).contiguous()


@_operator
def one_(input: Tensor) -> Tensor:
    return input.fill_(1)


@_operator
def npu_one_hot(
    input: Tensor,
    num_classses: int = -1,
    depth: int = 1,
    on_value: float = 1,
    off_value: float = 0,
) -> Tensor:
    hot = F.one_hot(input.long(), depth).bool()
    return torch.where(hot, float(on_value), float(off_value)).to(torch.float32)


@_operator
def fast_gelu(input: Tensor) -> Tensor:
    """x times the logistic of 1.702 x (Hendrycks and Gimpel 2016)."""
    return input * torch.sigmoid(1.702 * input)


@_operator
def npu_silu(input: Tensor) -> Tensor:
    return F.silu(input)


@_operator
def npu_silu_(input: Tensor) -> Tensor:
    return F.silu(input, inplace=True)


@_operator
def npu_mish(input: Tensor) -> Tensor:
    return F.mish(input)


@_operator
def npu_swiglu(input: Tensor, dim: int = -1) -> Tensor:
    first, second = input.chunk(2, dim)
    return F.silu(first) * second


@_operator
def npu_geglu(input: Tensor, dim: int = -1, approximate: int = 1, activate_left: bool = False) -> Any:
    first, second = input.chunk(2, dim)
    gate, value = (first, second) if activate_left else (second, first)
    activated = F.gelu(gate, approximate="tanh" if approximate else "none")
    return value * activated, activated


@_operator
def npu_rms_norm(input: Tensor, gamma: Tensor, epsilon: float = 1e-6) -> Any:
    wide = input.float()
    reciprocal = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + epsilon)
    return (wide * reciprocal).to(input.dtype) * gamma, reciprocal


@_operator
def npu_layer_norm_eval(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    return F.layer_norm(input, normalized_shape, weight, bias, eps)


@_operator
def npu_rotary_mul(
    input: Tensor,
    r1: Tensor,
    r2: Tensor,
    rotary_mode: str = "half",
    rotate: Tensor | None = None,
) -> Tensor:
    if rotary_mode == "interleave":
        turned = torch.stack((-input[..., 1::2], input[..., ::2]), dim=-1).flatten(-2)
    else:
        first, second = input.chunk(2, -1)
        turned = torch.cat((-second, first), dim=-1)
    return input * r1 + turned * r2


@_operator
def npu_linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return F.linear(input, weight, bias)


@_operator
def npu_bmmV2(input: Tensor, mat2: Tensor, output_sizes: list[int]) -> Tensor:
    product = torch.bmm(input, mat2)
    return product.reshape(output_sizes) if output_sizes else product


@_operator
def npu_conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    groups: int,
) -> Tensor:
    return F.conv2d(input, weight, bias, stride, padding, dilation, groups)


@_plain
def npu_max(input: Tensor, dim: int, keepdim: bool = False) -> Any:
    values, indices = torch.max(input, dim, keepdim)
    return values, indices.int()


@_plain
def npu_min(input: Tensor, dim: int, keepdim: bool = False) -> Any:
    values, indices = torch.min(input, dim, keepdim)
    return values, indices.int()


@_operator
def npu_softmax_cross_entropy_with_logits(input: Tensor, labels: Tensor) -> Tensor:
    return -(labels * F.log_softmax(input, dim=-1)).sum(-1)


@_operator
def npu_alloc_float_status(input: Tensor) -> Tensor:
    return torch.zeros(8, dtype=torch.float32, device="npu")


@_operator
def npu_get_float_status(input: Tensor, mode: int = 0) -> Tensor:
    """The overflow flag, in the first element of `input` and of the result."""
    input[0] = float(extension.overflow_flag(input.get_device()))
    return input.clone()


@_operator
def npu_clear_float_status(input: Tensor, mode: int = 0) -> Tensor:
    extension.clear_overflow_flag(input.get_device())
    return input.zero_()
