"""Printing a tensor: torch formats in float64, which an NPU does not have."""

from __future__ import annotations

from typing import Any

import torch


def print_in_float32() -> None:
    """Format npu tensors from a copy on the CPU, as the real package does."""
    whole: Any = torch._tensor_str._str_intern
    format_contents: Any = torch._tensor_str._tensor_str

    def on_cpu(inp: torch.Tensor, *, tensor_contents: str | None = None) -> str:
        if inp.device.type != "npu" or tensor_contents is not None or type(inp) not in (torch.Tensor, torch.nn.Parameter):
            return str(whole(inp, tensor_contents=tensor_contents))
        if inp.layout is not torch.strided or inp.is_meta:
            return str(whole(inp, tensor_contents=tensor_contents))
        plain = inp.detach().cpu()
        prefix = "tensor("
        contents = format_contents(plain, len(prefix)) if plain.numel() else None
        return str(whole(inp, tensor_contents=contents))

    torch._tensor_str._str_intern = on_cpu
