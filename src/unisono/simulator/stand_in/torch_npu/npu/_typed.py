"""torch.npu.FloatTensor and its family: constructors of npu tensors, and storages, by type."""

from __future__ import annotations

from typing import Any

import torch

_TYPES = {
    "BFloat16": torch.bfloat16,
    "Bool": torch.bool,
    "Byte": torch.uint8,
    "Char": torch.int8,
    "Double": torch.float32,  # float64 becomes float32 on an NPU
    "Float": torch.float32,
    "Half": torch.float16,
    "Int": torch.int32,
    "Long": torch.int64,
    "Short": torch.int16,
}


class _TensorType(type):
    """isinstance asks for device and type; calling makes a tensor."""

    npu_dtype: torch.dtype

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.Tensor) and instance.device.type == "npu" and instance.dtype is cls.npu_dtype

    def __call__(cls, *arguments: Any) -> torch.Tensor:
        if len(arguments) == 1 and not isinstance(arguments[0], int):
            return torch.as_tensor(arguments[0], dtype=cls.npu_dtype).to("npu")
        return torch.empty(*(arguments or (0,)), dtype=cls.npu_dtype, device="npu")


def tensor_types() -> dict[str, Any]:
    """Each of torch.npu's tensor and storage classes by name."""
    made: dict[str, Any] = {}
    for name, dtype in _TYPES.items():
        members = {"npu_dtype": dtype, "__module__": "torch.npu"}
        made[f"{name}Tensor"] = _TensorType(f"{name}Tensor", (), members)
        made[f"{name}Storage"] = _storage_type(name, dtype)
    return made


def _storage_type(name: str, dtype: torch.dtype) -> Any:
    legacy: Any = torch.storage._LegacyStorage

    def kept(_: object) -> torch.dtype:
        return dtype

    members = {"npu_dtype": dtype, "__module__": "torch.npu", "dtype": property(kept), "_dtype": property(kept)}
    return type(legacy)(f"{name}Storage", (legacy,), members)
