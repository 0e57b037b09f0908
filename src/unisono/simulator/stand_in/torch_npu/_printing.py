"""Printing a tensor: torch formats in float64, which an NPU does not have."""

from __future__ import annotations

import torch


def print_in_float32() -> None:
    """Format npu tensors from a copy on the CPU, as the real package does."""
    whole = torch._tensor_str._str_intern

    def on_cpu(inp: torch.Tensor, *, tensor_contents: str | None = None) -> str:
        if inp.device.type != "npu" or tensor_contents is not None or type(inp) not in (torch.Tensor, torch.nn.Parameter):
            return whole(inp, tensor_contents=tensor_contents)
        if inp.layout is not torch.strided or inp.is_meta:
            return whole(inp, tensor_contents=tensor_contents)
        plain = inp.detach().cpu()
        prefix = "tensor("
        contents = torch._tensor_str._tensor_str(plain, len(prefix)) if plain.numel() else None
        return whole(inp, tensor_contents=contents)

    torch._tensor_str._str_intern = on_cpu
