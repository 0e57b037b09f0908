"""`from torch_npu.contrib import transfer_to_npu`: CUDA names of torch lead to NPUs in this process from then on.

What it reaches and what it leaves alone follows the real one: torch.device("cuda").type stays "cuda", torch.amp.GradScaler
("cuda"), torch.backends.cudnn, torch.cuda.nvtx and names bound before the import stay CUDA's.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import torch_npu
from torch_npu.npu.amp import GradScaler, autocast

_DEVICE_WORDS = ("device", "device_type", "map_location", "device_id")
_FACTORIES = (
    "arange", "asarray", "as_tensor", "blackman_window", "empty", "empty_like", "empty_strided", "eye", "frombuffer", "full",
    "full_like", "hamming_window", "hann_window", "kaiser_window", "linspace", "load", "logspace", "normal", "ones",
    "ones_like", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range",
    "set_default_device", "sparse_coo_tensor", "tensor", "tril_indices", "triu_indices", "zeros", "zeros_like",
    "get_device_module",
)  # fmt: skip
_TENSOR_METHODS = (
    "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros", "pin_memory", "to",
)  # fmt: skip


def _as_npu(value: Any) -> Any:
    """A device, or text that names one, with cuda read as npu."""
    if isinstance(value, torch.device):
        return torch.device("npu", value.index) if value.type == "cuda" else value
    if isinstance(value, str):
        return value.replace("cuda", "npu")
    if isinstance(value, dict):
        return {_as_npu(key): _as_npu(item) for key, item in value.items()}
    return value


def _numbered(value: Any) -> Any:
    return f"npu:{value}" if isinstance(value, int) and not isinstance(value, bool) else _as_npu(value)


def _reading_npu(function: Callable[..., Any], *, positional_numbers: bool = False) -> Callable[..., Any]:
    """The function, called with npu where the caller said cuda."""

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        changed = [_as_npu(a) if isinstance(a, str | torch.device) else a for a in arguments]
        if positional_numbers and len(changed) > 1:
            changed[1] = _numbered(changed[1])
        for word in _DEVICE_WORDS:
            if word in named:
                named[word] = _numbered(named[word])
        return function(*changed, **named)

    return wrapped


def _rebind(owner: Any, **objects: Any) -> None:
    """Put other objects under names of a module or class: what this import is for."""
    for name, value in objects.items():
        setattr(owner, name, value)


def _rebind_cuda_module() -> None:
    for name in torch_npu.npu.__all__:
        if hasattr(torch.cuda, name) and not isinstance(getattr(torch.cuda, name), type(torch)):
            setattr(torch.cuda, name, getattr(torch_npu.npu, name))
    for name in ("set_device", "synchronize", "get_device_name", "get_device_properties", "memory_allocated", "device",
                 "max_memory_allocated", "memory_reserved", "mem_get_info", "current_stream", "default_stream",
                 "get_device_capability", "memory_stats", "memory_summary", "reset_peak_memory_stats", "get_rng_state",
                 "set_rng_state", "max_memory_reserved", "utilization", "can_device_access_peer"):  # fmt: skip
        setattr(torch.cuda, name, _reading_npu(getattr(torch_npu.npu, name)))
    _rebind(torch.cuda, DoubleTensor=torch_npu.npu.FloatTensor, default_generators=torch_npu.npu.default_generators)
    _rebind(torch.cuda.amp, autocast=autocast, GradScaler=GradScaler)
    _rebind(torch.cuda.amp.autocast_mode, autocast=autocast)
    _rebind(torch.cuda.amp.grad_scaler, GradScaler=GradScaler)
    for name in torch.cuda.random.__all__:
        setattr(torch.cuda.random, name, getattr(torch_npu.npu.random, name))
    _rebind(torch.cuda.amp, custom_fwd=torch_npu.npu.amp.custom_fwd, custom_bwd=torch_npu.npu.amp.custom_bwd)


def _rebind_tensors_and_modules() -> None:
    for name in _FACTORIES:
        setattr(torch, name, _reading_npu(getattr(torch, name)))
    for name in _TENSOR_METHODS:
        setattr(torch.Tensor, name, _reading_npu(getattr(torch.Tensor, name), positional_numbers=name == "to"))
    module = torch.nn.Module
    npu_tensor, npu_module = vars(torch.Tensor)["npu"], vars(module)["npu"]
    _rebind(
        module, to=_reading_npu(module.to, positional_numbers=True), to_empty=_reading_npu(module.to_empty), cuda=npu_module
    )
    _rebind(torch.Tensor, cuda=npu_tensor, is_cuda=vars(torch.Tensor)["is_npu"])
    _rebind(torch.amp.autocast, __init__=_reading_npu(torch.amp.autocast.__init__))
    _rebind(torch, Generator=_generator_class())


def _generator_class() -> Any:
    real = torch.Generator

    class _Reading(type):
        def __instancecheck__(cls, instance: object) -> bool:
            return isinstance(instance, real)

        def __call__(cls, device: Any = "cpu") -> torch.Generator:
            return real(device=_numbered(device))

    return _Reading("Generator", (), {"__module__": "torch"})


def _rebind_distributed() -> None:
    if not dist.is_available():
        return
    for module in (dist, dist.distributed_c10d):
        for name in ("init_process_group", "new_group"):
            setattr(module, name, _with_hccl(getattr(dist.distributed_c10d, name)))
        _rebind(
            module,
            is_nccl_available=torch_npu.distributed.is_hccl_available,
            ProcessGroupNCCL=torch_npu.distributed.ProcessGroupHCCL,
        )
    init = torch.nn.parallel.DistributedDataParallel.__init__

    @functools.wraps(init)
    def with_npus(self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *rest: Any, **named: Any) -> None:
        ids = [_as_npu(device) for device in device_ids] if isinstance(device_ids, list | tuple) else device_ids
        init(self, module, ids, _as_npu(output_device), *rest, **named)

    _rebind(torch.nn.parallel.DistributedDataParallel, __init__=with_npus)


def _with_hccl(function: Callable[..., Any]) -> Callable[..., Any]:
    if getattr(function, "_reads_hccl", False):
        return function

    def read(text: Any) -> Any:
        return text.replace("nccl", "hccl").replace("cuda", "npu") if isinstance(text, str) else text

    @functools.wraps(function)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if "backend" in named:
            named["backend"] = read(named["backend"])
        if "device_id" in named:
            named["device_id"] = _as_npu(named["device_id"])
        return function(*[read(argument) for argument in arguments], **named)

    _rebind(wrapped, _reads_hccl=True)  # so that a second name does not wrap it again
    return wrapped


def _rebind_the_rest() -> None:
    for name in ("profile", "schedule", "tensorboard_trace_handler"):
        setattr(torch.profiler, name, getattr(torch_npu.profiler, name))

    def leave_as_it_is(obj: Any = None, *_: Any, **__: Any) -> Any:
        warnings.warn("torch.jit.script is disabled by transfer_to_npu", RuntimeWarning, stacklevel=2)
        return obj

    _rebind(torch.jit, script=leave_as_it_is)


warnings.warn(
    "transfer_to_npu replaces torch.cuda by torch.npu in this process, and 'cuda' and 'nccl' in arguments by 'npu' and 'hccl'",
    ImportWarning,
    stacklevel=2,
)
_rebind_the_rest()
_rebind_cuda_module()
_rebind_tensors_and_modules()
_rebind_distributed()
