"""The chips that can be simulated, and what differs between them.

Sources: device names and core counts as `npu-smi` and torch_npu report them for one variant of each family; fp16 overflow and
bfloat16 from Ascend's documents of INF_NAN_MODE_ENABLE; the two rings of a 910A server from the HCCL guide.
"""

from __future__ import annotations

from dataclasses import dataclass

from unisono.errors import UserError

GIB = 2**30


@dataclass(frozen=True, kw_only=True, slots=True)
class Chip:
    """Rules of one chip family."""

    device_name: str
    """What torch.npu.get_device_name says."""
    soc_version: int
    """What torch.npu.get_soc_version says."""
    memory_bytes: int
    """Memory of one device."""
    cube_cores: int
    vector_cores: int
    l2_cache_bytes: int
    bfloat16: bool
    saturates: bool
    """fp16 overflow gives 65504 and NaN gives 0. False: IEEE inf and NaN."""
    two_rings: bool
    """Cards 0-3 and 4-7 are separate rings; a job of 2 or 4 cards stays on one."""
    jit_compile: bool
    """Default of torch.npu.set_compile_mode(jit_compile=...)."""
    internal_format: bool
    """Default of torch.npu.config.allow_internal_format."""


CHIPS: dict[str, Chip] = {
    "910A": Chip(
        device_name="Ascend910A",
        soc_version=102,
        memory_bytes=32 * GIB,
        cube_cores=32,
        vector_cores=32,
        l2_cache_bytes=32 * 2**20,
        bfloat16=False,
        saturates=True,
        two_rings=True,
        jit_compile=True,
        internal_format=True,
    ),
    "910B": Chip(
        device_name="Ascend910B3",
        soc_version=223,
        memory_bytes=64 * GIB,
        cube_cores=20,
        vector_cores=40,
        l2_cache_bytes=192 * 2**20,
        bfloat16=True,
        saturates=False,
        two_rings=False,
        jit_compile=False,
        internal_format=False,
    ),
    "910C": Chip(
        device_name="Ascend910_9392",
        soc_version=251,
        memory_bytes=64 * GIB,
        cube_cores=24,
        vector_cores=48,
        l2_cache_bytes=192 * 2**20,
        bfloat16=True,
        saturates=False,
        two_rings=False,
        jit_compile=False,
        internal_format=False,
    ),
}
DEFAULT_CHIP = "910B"


def chip_named(name: str) -> Chip:
    """The chip of that name; case does not matter.

    Raises:
        UserError: S104 an unknown chip.
    """
    chip = CHIPS.get(name.upper())
    if chip is None:
        raise UserError.unknown("S104", "chip", name, CHIPS)
    return chip
