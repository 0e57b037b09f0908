"""torch.npu: devices, streams, memory, random numbers and mixed precision of simulated NPUs."""

from __future__ import annotations

from typing import Any

import torch

from torch_npu._missing import missing_names
from torch_npu._runtime import extension
from torch_npu.npu import amp, autocast_utils, backends, deterministic, memory, npu_config, random, streams, utils
from torch_npu.npu._typed import tensor_types
from torch_npu.npu.autocast_utils import (
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)
from torch_npu.npu.backends import (
    enable_flash_sdp,
    enable_math_sdp,
    enable_mem_efficient_sdp,
    flash_sdp_enabled,
    math_sdp_enabled,
    mem_efficient_sdp_enabled,
    preferred_linalg_library,
    sdp_kernel,
)
from torch_npu.npu.deterministic import disable_deterministic_with_backward, enable_deterministic_with_backward
from torch_npu.npu.memory import (
    empty_cache,
    empty_virt_addr_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_empty_cache,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_npu.npu.mstx import mstx
from torch_npu.npu.npu_config import (
    config,
    conv,
    finalize_dump,
    get_device_limit,
    get_mm_bmm_format_nd,
    init_dump,
    is_jit_compile_false,
    matmul,
    set_compile_mode,
    set_device_limit,
    set_mm_bmm_format_nd,
    set_option,
)
from torch_npu.npu.random import (
    get_default_generator,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_npu.npu.streams import (
    Event,
    Stream,
    StreamContext,
    SyncLaunchStream,
    current_stream,
    default_stream,
    get_stream_limit,
    reset_stream_limit,
    set_stream,
    set_stream_limit,
    stream,
)
from torch_npu.npu.utils import (
    ErrCode,
    _exchange_device,
    _is_in_bad_fork,
    _lazy_init,
    _maybe_exchange_device,
    are_compatible_impl_enabled,
    can_device_access_peer,
    check_uce_in_memory,
    classproperty,
    clear_npu_overflow_flag,
    current_blas_handle,
    current_device,
    device_count,
    device_of,
    get_amp_supported_dtype,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_npu_overflow_flag,
    get_soc_version,
    get_sync_debug_mode,
    get_task_queue_enable,
    init,
    ipc_collect,
    is_available,
    is_bf16_supported,
    is_initialized,
    npurt,
    prof_error,
    pta_error,
    set_deterministic_level,
    set_device,
    set_op_timeout_ms,
    set_sync_debug_mode,
    set_task_queue_enable,
    stress_detect,
    synchronize,
    use_compatible_impl,
)
from torch_npu.npu.utils import device_context as device

is_simulated = True
default_generators: tuple[torch.Generator, ...] = tuple(
    extension.default_generator(index) for index in range(extension.device_count())
)
globals().update(tensor_types())


def is_current_stream_capturing() -> bool:
    """False: graphs are not simulated."""
    return False


_missing = missing_names(__name__)


def __getattr__(name: str) -> Any:
    return _missing(name)


__all__ = [name for name in dir() if not name.startswith("_")]
