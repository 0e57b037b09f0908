"""Versions against the vendor's table: Python, torch, torch_npu, CANN, driver and firmware. Nothing is imported."""

from __future__ import annotations

import csv
import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from packaging.version import InvalidVersion, Version

from unisono.doctor.finding import Finding, fail, ok, skip, unknown, warn

TABLE_DATE = "2026-11"
_TABLE = Path(__file__).parent / "knowledge" / "compat.tsv"
_DRIVER = Path("/usr/local/Ascend/driver/version.info")
_FIRMWARE = Path("/usr/local/Ascend/firmware/version.info")
_TOOLKITS = ("/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest")
# Source: torch_npu's documentation of its environment variables.
_DRIVER_MINIMUMS = (
    ("expandable_segments:True", "23.0.0"),
    ("page_size:1g", "25.0.RC1"),
    ("pin_memory_expandable_segments:True", "25.5.0"),
    ("pinned_mem_register:True", "26.0.RC1"),
)
_OLDEST, _NEWEST = Version("2.11"), Version("2.15")


def check_versions() -> Iterator[Finding]:
    """H101-H107."""
    python = platform.python_version()
    yield (
        ok("H101", f"Python {python}")
        if sys.version_info >= (3, 11)
        else fail(
            "H101", f"Python {python} is too old", "unisono needs 3.11", "make an environment with Python 3.11 or newer"
        )
    )
    torch, torch_npu, torchvision = (_version_of(name) for name in ("torch", "torch-npu", "torchvision"))
    yield _torch(torch)
    yield _torchvision(torch, torchvision)
    cann = cann_version()
    if torch_npu is None:
        yield skip("H104", "torch_npu", "not installed; needed on Ascend NPUs only")
    else:
        yield _torch_npu(torch, torch_npu)
        yield _cann(torch_npu, cann)
    yield from _driver(cann)


def _torch(torch: str | None) -> Finding:
    if torch is None:
        return fail(
            "H102",
            "torch is not installed here",
            sys.executable,
            "install it into this environment",
            "pip install torch torchvision",
        )
    if not _OLDEST <= Version(torch.split("+")[0]) < _NEWEST:
        return warn(
            "H102", f"torch {torch} is outside the tested range", "tested: 2.11 to 2.14", "install a tested version"
        )
    return ok("H102", f"torch {torch}")


def _torchvision(torch: str | None, torchvision: str | None) -> Finding:
    """torchvision 0.(N+15) belongs to torch 2.N; another pair breaks at import with a missing operator."""
    if torch is None or torchvision is None:
        return (
            skip("H103", "torchvision", "not installed")
            if torchvision is None
            else skip("H103", "torchvision", "no torch")
        )
    expected = Version(torch.split("+")[0]).minor + 15
    if Version(torchvision.split("+")[0]).minor != expected:
        return fail(
            "H103",
            f"torchvision {torchvision} does not belong to torch {torch}",
            f"it belongs with 0.{expected}",
            "install the pair together",
            f"pip install torch=={torch.split('+')[0]} 'torchvision==0.{expected}.*'",
        )
    return ok("H103", f"torchvision {torchvision} belongs to torch {torch}")


def _torch_npu(torch: str | None, torch_npu: str) -> Finding:
    rows = [row for row in table() if row["torch_npu"] == torch_npu]
    wanted = rows[0]["torch"] if rows else ".".join(torch_npu.split(".")[:3]).split("rc")[0]
    if torch is None or torch.split("+")[0] != wanted:
        return fail(
            "H104",
            f"torch_npu {torch_npu} beside torch {torch}",
            f"it was built for torch {wanted}",
            "install the pair together",
            f"pip install torch=={wanted} torch-npu=={torch_npu}",
        )
    pythons = rows[0]["python"].split(",") if rows else []
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    if pythons and mine not in pythons:
        return warn(
            "H104",
            f"torch_npu {torch_npu} on Python {mine}",
            f"released for Python {', '.join(pythons)} (table of {TABLE_DATE})",
            f"make an environment with Python {pythons[-1]}",
        )
    return ok("H104", f"torch_npu {torch_npu} belongs to torch {torch}")


def _cann(torch_npu: str, cann: str | None) -> Finding:
    if cann is None:
        return fail(
            "H105",
            "CANN is not found",
            "no version file below /usr/local/Ascend",
            "install the CANN toolkit and kernels, then source its set_env.sh",
        )
    wanted = sorted({row["cann"] for row in table() if row["torch_npu"] == torch_npu})
    if not wanted:
        return unknown(
            "H105",
            f"CANN {cann} beside torch_npu {torch_npu}",
            f"this torch_npu is not in the table of {TABLE_DATE}",
            "see its release notes for the CANN it was tested with",
        )
    if not any(same_release(cann, one) for one in wanted):
        return warn(
            "H105",
            f"CANN {cann} beside torch_npu {torch_npu}",
            f"tested with CANN {', '.join(wanted)} (table of {TABLE_DATE})",
            f"install CANN {wanted[-1]}, or the torch_npu of CANN {cann}",
        )
    return ok("H105", f"CANN {cann} belongs to torch_npu {torch_npu}", f"table of {TABLE_DATE}")


def _driver(cann: str | None) -> Iterator[Finding]:
    driver, firmware = read_version_info(_DRIVER), read_version_info(_FIRMWARE)
    if not driver:
        yield skip("H106", "NPU driver", f"no {_DRIVER}")
        return
    yield ok("H106", f"NPU driver {driver.get('Version', 'of unknown version')}", f"CANN {cann or 'unknown'}")
    yield from _features(driver.get("Version", ""), os.environ)
    low_high = re.findall(r"[\d.]+", driver.get("compatible_version_fw", ""))
    version_text = firmware.get("Version", "")
    if len(low_high) != 2 or not version_text:
        yield unknown(
            "H107", "driver and firmware", "the driver names no range of firmware, or firmware has no version file"
        )
    elif _numbers(low_high[0]) <= _numbers(version_text) <= (*_numbers(low_high[1]), 10**6):
        yield ok("H107", f"firmware {version_text} fits the driver")
    else:
        yield fail(
            "H107",
            f"firmware {version_text} does not fit the driver",
            f"the driver takes {low_high[0]} to {low_high[1]}",
            "install the firmware of the driver's release, firmware first when upgrading",
        )


def _features(driver: str, env: Mapping[str, str]) -> Iterator[Finding]:
    """Allocator options that are switched on and need a newer driver than this one."""
    conf = env.get("PYTORCH_NPU_ALLOC_CONF", "").replace(" ", "")
    for option, needed in _DRIVER_MINIMUMS:
        if option in conf and driver and release_key(driver) < release_key(needed):
            yield fail(
                "H108",
                f"driver {driver} is too old for {option}",
                f"PYTORCH_NPU_ALLOC_CONF={conf}; it needs driver {needed}",
                "take the option out, or bring driver and firmware up to date",
                "unset PYTORCH_NPU_ALLOC_CONF",
            )


def table() -> list[dict[str, str]]:
    """The vendor's matrix: torch, torch_npu, CANN, Python."""
    with open(_TABLE, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def cann_version(roots: Sequence[str] | None = None) -> str | None:
    """CANN's version by the files that its releases leave, the sourced one first; None without one."""
    if roots is None:
        sourced = [os.environ.get(name, "") for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH")]
        roots = [*filter(None, sourced), *_TOOLKITS]
    for root in map(Path, roots):
        for path in [*root.glob("*-linux/ascend_toolkit_install.info"), root / "version.cfg"]:
            try:
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            match = re.search(r"^version=(\S+)", text, re.M) or re.search(
                r"toolkit_running_version=\[[^:\]]*:([^\]]+)\]", text
            )
            if match:
                return match[1]
    return None


def read_version_info(path: Path) -> dict[str, str]:
    """The key=value lines of a version.info; empty when there is none."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {
        key.strip(): value.strip()
        for key, equals, value in (line.partition("=") for line in text.splitlines())
        if equals
    }


def same_release(a: str, b: str) -> bool:
    """8.3.RC1, 8.3.rc1 and 8.3.RC1.alpha001 are one release, 8.0.RC2 and 8.0.RC3 two; 8.5.0 and 8.5.1 are not told apart."""
    return release_key(a)[:2] == release_key(b)[:2] and release_key(a)[2] == release_key(b)[2]


def release_key(text: str) -> tuple[int, int, int, int]:
    """Major, minor, number of the release candidate, patch; a release counts as a candidate after all candidates."""
    major, minor, rest = ([*text.lower().split(".", 2), "0", "0"])[:3]
    candidate = re.match(r"rc([0-9]{1,4})", rest)
    numbers = [*(_numbers(part)[:1] or (0,) for part in (major, minor, rest))]
    return (numbers[0][0], numbers[1][0], int(candidate[1]) if candidate else 10**6, 0 if candidate else numbers[2][0])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text))


def _version_of(package: str) -> str | None:
    try:
        found = version(package)
        Version(found)
    except (PackageNotFoundError, InvalidVersion):
        return None
    return found
