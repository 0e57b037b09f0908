"""The simulator's C++ extension: built once for each torch and Python, kept in the user's cache, loaded from there."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

from unisono.errors import ExitCode, UserError

NAME = "unisono_simnpu"
FLAGS = ("-O2", "-g0", "-DUSE_C10D_GLOO")
# Long enough for a slow machine to build while its other ranks wait.
LOCK_TIMEOUT_S = 1800
_LEAST_BUILD_JOBS = 2


def source_dir() -> Path:
    """The folder of the C++ sources: in an installed package, or beside `src` in a checkout.

    Raises:
        UserError: S112 neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "csrc" / "simnpu", package.parents[1] / "csrc" / "simnpu"):
        if (folder / "bindings.cpp").is_file():
            return folder
    raise UserError(
        "S112",
        "the simulator's C++ sources are missing",
        f"looked in {package / 'csrc' / 'simnpu'}",
        "install unisono again, from its wheel or its source",
    )


def cache_dir() -> Path:
    """Where built extensions are kept: $UNISONO_CACHE, or unisono under $XDG_CACHE_HOME or ~/.cache."""
    named = os.environ.get("UNISONO_CACHE")
    if named:
        return Path(named) / "simulator"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unisono" / "simulator"


def fingerprint() -> str:
    """Changes with the sources, the flags, torch and Python: what a built file may be used with. Does not import torch."""
    found = importlib.util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    digest = hashlib.sha256((Path(found.origin).parent / "version.py").read_bytes())
    for path in sorted(source_dir().iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    for text in (*FLAGS, sys.version, sys.abiflags):
        digest.update(text.encode())
    return digest.hexdigest()[:16]


def ensure_built(report: Callable[[str], None] | None = None) -> Path:
    """The extension's file, built first where it is not in the cache. One process builds, others wait for it.

    Args:
        report: told in one line that a build begins, and in another how long it took. Default: standard error.

    Raises:
        UserError: S110 no C++ compiler, S111 the build failed, S112 no sources, S114 the cache cannot be written.
    """
    path = cache_dir() / fingerprint() / f"{NAME}.so"
    if not path.is_file():
        _build_locked(path, report or _to_standard_error)
    return path


def load_extension(report: Callable[[str], None] | None = None) -> ModuleType:
    """The extension, built first where needed, and loaded once. Raises as `ensure_built` does."""
    path = None if NAME in sys.modules else ensure_built(report)
    if path is None or NAME in sys.modules:
        return sys.modules[NAME]
    spec = importlib.util.spec_from_file_location(NAME, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    return module


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def _build_locked(path: Path, report: Callable[[str], None]) -> None:
    from filelock import FileLock

    try:
        path.parent.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{path.parent}.lock", timeout=LOCK_TIMEOUT_S):
            if not path.is_file():
                _build(path, report)
    except OSError as error:
        raise UserError(
            "S114",
            f"cannot write the simulator's cache {path.parent.parent}",
            error.strerror or str(error),
            "set UNISONO_CACHE to a folder that you may write to",
        ) from error


def _build(path: Path, report: Callable[[str], None]) -> None:
    _require_compiler()
    import torch

    report(f"building the simulated NPU for torch {torch.__version__}: once, a minute on two cores")
    started = time.monotonic()
    # Built aside and moved into place whole, so that a build that was killed leaves nothing to trip over.
    with tempfile.TemporaryDirectory(dir=path.parent.parent, prefix="build-") as folder:
        try:
            _compile(Path(folder))
        except (RuntimeError, subprocess.CalledProcessError, ImportError) as error:
            raise UserError(
                "S111",
                "the simulated NPU did not build",
                _first_error(str(error)),
                "install g++ 11 or newer and torch's own headers (a wheel has them); see docs/simulator.md",
                exit_code=ExitCode.CRASHED,
            ) from error
        path.parent.mkdir(exist_ok=True)
        (Path(folder) / f"{NAME}.so").replace(path)
    report(f"built the simulated NPU in {time.monotonic() - started:.0f} s; kept in {path.parent}")


def _require_compiler() -> None:
    compiler = os.environ.get("CXX", "c++")
    if shutil.which(compiler) is None:
        raise UserError(
            "S110",
            f"no C++ compiler: {compiler} is not on the PATH",
            "the simulated NPU is built once on your machine, for your torch",
            "install one (Debian, Ubuntu: apt-get install g++; RHEL, openEuler: dnf install gcc-c++), or set CXX",
        )


def _compile(folder: Path) -> None:
    """Build and load by torch's own means; the loaded file stays valid when it is moved."""
    sources = [str(path) for path in sorted(source_dir().glob("*.cpp"))]
    with _build_environment(), _quiet_logging():
        from torch.utils import cpp_extension

        cpp_extension.load(
            name=NAME, sources=sources, extra_cflags=list(FLAGS), build_directory=str(folder), with_cuda=False
        )


@contextlib.contextmanager
def _build_environment() -> Iterator[None]:
    """Ninja of this environment on the PATH, and as many compilers as there are cores."""
    before = dict(os.environ)
    folders = [str(Path(sys.executable).parent)]
    with contextlib.suppress(ImportError):
        import ninja

        folders.append(ninja.BIN_DIR)
    os.environ["PATH"] = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    os.environ.setdefault("MAX_JOBS", str(max(_LEAST_BUILD_JOBS, len(os.sched_getaffinity(0)))))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _quiet_logging() -> Iterator[None]:
    """torch's builder remarks on a CUDA that nobody asked for."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if "error" in line.lower() and "FAILED" not in line]
    return lines[0][:300] if lines else output.strip().splitlines()[-1][:300] if output.strip() else "no output"
