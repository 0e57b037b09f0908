"""Facts that the rules rest on, as tables: which names torch.npu has (torch_npu 2.13), environment variables, libraries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class CudaName:
    """A name under torch.cuda. `npu` is its name under torch.npu, or "" when there is none."""

    name: str
    npu: str
    portable: str
    """"accelerator.X" for torch.accelerator.X, "module" for torch.get_device_module().name, another torch name, or ""."""
    advice: str


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable of CUDA or NCCL, and its counterpart ("" when there is none)."""

    name: str
    npu: str
    kind: str
    """"rename", "unsafe", "manual" or "hint"."""
    note: str


@cache
def cuda_names() -> dict[str, CudaName]:
    """Names under torch.cuda, without that prefix."""
    return {row[0]: CudaName(*(("" if cell == "-" else cell) for cell in row)) for row in _rows("torch_cuda.tsv")}


@cache
def variables() -> dict[str, Variable]:
    """Environment variables by name."""
    return {
        row[0]: Variable(row[0], "" if row[1] == "-" else row[1], row[2], row[3]) for row in _rows("environment.tsv")
    }


@cache
def libraries() -> dict[str, tuple[str, str]]:
    """CUDA-only libraries: module to (finding code, what to use)."""
    return {row[0]: (row[1], row[2]) for row in _rows("libraries.tsv")}


def find_cuda_name(relative: str) -> CudaName | None:
    """The entry for the longest known beginning of a dotted name under torch.cuda ("memory._snapshot" -> "memory")."""
    parts = relative.split(".")
    table = cuda_names()
    for length in range(len(parts), 0, -1):
        found = table.get(".".join(parts[:length]))
        if found is not None:
            return found
    return None


def _rows(name: str) -> list[list[str]]:
    text = (files(__name__) / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[1:] if line]
