"""torch_npu.utils: joined tensors, versions, saving in the background."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import torch

from torch_npu._missing import also_known_as, missing_names

__all__ = ["get_cann_version", "get_part_combined_tensor", "is_combined_tensor_valid", "npu_combine_tensors", "save_async"]


def get_cann_version(module: str = "CANN") -> str:
    """Empty: there is no CANN here."""
    return ""


def npu_combine_tensors(list_of_tensor: list[torch.Tensor], require_copy_value: bool = True) -> torch.Tensor | None:
    """One flat tensor that the given ones become views of; None for an empty list.

    Raises:
        RuntimeError: tensors of different types or devices.
    """
    if not list_of_tensor:
        return None
    first = list_of_tensor[0]
    if any(tensor.dtype != first.dtype or tensor.device != first.device for tensor in list_of_tensor):
        raise RuntimeError("only tensors of one type on one NPU can be combined")
    combined = torch.zeros(sum(tensor.numel() for tensor in list_of_tensor), dtype=first.dtype, device=first.device)
    start = 0
    for tensor in list_of_tensor:
        part = combined[start : start + tensor.numel()].view(tensor.shape)
        if require_copy_value:
            part.copy_(tensor.data)
        tensor.data = part
        start += tensor.numel()
    return combined


def get_part_combined_tensor(combined_tensor: torch.Tensor | None, index: int, size: int) -> torch.Tensor | None:
    """A part of a combined tensor."""
    if combined_tensor is None or size == 0:
        return None
    return combined_tensor[index : index + size]


def is_combined_tensor_valid(combined_tensor: torch.Tensor | None, list_of_tensor: list[torch.Tensor]) -> bool:
    """Whether the tensors are still views of the combined one, in order."""
    if combined_tensor is None:
        return not list_of_tensor
    address = combined_tensor.data_ptr()
    for tensor in list_of_tensor:
        if tensor.data_ptr() != address:
            return False
        address += tensor.numel() * tensor.element_size()
    return True


def save_async(
    obj: object,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
    model: torch.nn.Module | None = None,
) -> None:
    """torch.save of a CPU copy in a thread of its own, which the interpreter waits for at its end."""
    copy = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().to("cpu", copy=True), obj)
    settings = (pickle_module, pickle_protocol, _use_new_zipfile_serialization, _disable_byteorder_record)
    threading.Thread(target=torch.save, args=(copy, f, *settings)).start()


def set_thread_affinity(core_range: Any = None) -> None:
    """Accepted; the operating system places threads."""


def reset_thread_affinity() -> None:
    """Accepted; the operating system places threads."""


__getattr__ = missing_names(__name__)
also_known_as(__name__, "affinity", "combine_tensors", "serialization")
