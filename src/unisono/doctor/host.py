"""The host: shared memory, limits, disk, ports, cores, memory."""

from __future__ import annotations

import os
import resource
import shutil
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from unisono.doctor.finding import Finding, fail, ok, skip, unknown, warn

_GIB = 2**30


def check_host(run_dir: Path = Path("runs"), devices: int = 1) -> Iterator[Finding]:
    """H150-H157."""
    yield _shared_memory()
    yield _open_files()
    yield _processes()
    yield _disk(run_dir)
    yield _port()
    yield _cores(devices)
    yield _memory()
    yield _numa()


def _shared_memory(folder: Path = Path("/dev/shm")) -> Finding:
    if not folder.is_dir():
        return skip("H150", "/dev/shm", "not on this system")
    free = shutil.disk_usage(folder).free
    if free < _GIB:
        return warn(
            "H150",
            f"{free / 2**20:,.0f} MiB free in /dev/shm",
            "loader workers hand batches over there; containers give it 64 MiB",
            "start the container with more, or use fewer workers",
            "docker run --shm-size=8g ...",
        )
    return ok("H150", f"{free / _GIB:,.1f} GiB free in /dev/shm")


def _open_files() -> Finding:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 4096:
        return warn(
            "H151",
            f"at most {soft} open files",
            "workers and ranks hold many",
            "raise the limit",
            f"ulimit -n {min(65536, hard) if hard > 0 else 65536}",
        )
    return ok("H151", f"at most {soft} open files")


def _processes(pids_max: Path = Path("/sys/fs/cgroup/pids.max")) -> Finding:
    """Threads count as processes to both limits; a rank with its loader workers has some hundred."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    limits = [] if soft == resource.RLIM_INFINITY else [(soft, "ulimit -u")]
    with suppress(OSError, ValueError):
        limits.append((int(pids_max.read_text(encoding="ascii")), "the container's pids.max"))
    if not limits:
        return ok("H157", "processes and threads are not limited")
    limit, name = min(limits)
    if limit >= 4096:
        return ok("H157", f"at most {limit} processes and threads", name)
    of_shell = name == "ulimit -u"
    return warn(
        "H157",
        f"at most {limit} processes and threads",
        f"{name}; a rank with its workers has some hundred",
        "raise the limit" if of_shell else "start the container with more",
        f"ulimit -u {hard if hard > 0 else 65536}" if of_shell else "docker run --pids-limit=65536 ...",
    )


def _disk(run_dir: Path) -> Finding:
    place = run_dir.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return fail("H152", f"{place} cannot be written", "runs go there", "choose another folder with --runs-dir")
    if free < _GIB:
        return warn(
            "H152",
            f"{free / 2**20:,.0f} MiB free where runs go",
            str(place),
            "free some space, or --runs-dir elsewhere",
        )
    return ok("H152", f"{free / _GIB:,.0f} GiB free where runs go", str(place))


def _port() -> Finding:
    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            probe.listen(1)
            with socket.create_connection(probe.getsockname(), timeout=5):
                return ok("H153", "a free port can be opened and reached on the loopback")
    except OSError as error:
        return fail(
            "H153",
            "the loopback does not work",
            str(error),
            "ranks of one machine meet there: bring `lo` up",
            "ip link set lo up",
        )


def _cores(devices: int) -> Finding:
    cores = len(os.sched_getaffinity(0))
    quota = _cgroup_cores()
    usable = min(cores, quota) if quota else cores
    text = f"{cores} cores" + (f", limited to {quota:g} by the container" if quota and quota < cores else "")
    if usable < devices:
        return warn(
            "H154",
            f"{usable:g} cores for {devices} devices",
            text,
            "each rank wants a core of its own; start fewer ranks or give more cores",
        )
    return ok("H154", f"{usable / devices:g} cores a device", text)


def _cgroup_cores(folder: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Cores that the container may use, by the second or the first version of control groups; None without a limit."""
    try:
        quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass
    try:
        first, of = (
            int((folder / "cpu" / name).read_text(encoding="ascii")) for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        )
        return first / of if first > 0 and of > 0 else None
    except (OSError, ValueError):
        return None


def _cgroup_memory(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Bytes that the container may still take; None where nothing limits it."""
    names = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
    for limit_name, used_name in names:  # the second version of control groups, then the first
        try:
            limit = (folder / limit_name).read_text(encoding="ascii").strip()
            # The first version writes a number near 2**63 where nothing limits.
            if limit == "max" or int(limit) >= 2**60:
                return None
            return max(0, int(limit) - int((folder / used_name).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return None


def _memory() -> Finding:
    try:
        import psutil

        available = psutil.virtual_memory().available
        limited = _cgroup_memory()
        if limited is not None and limited < available:
            if limited < 2 * _GIB:
                return warn(
                    "H155",
                    f"{limited / _GIB:.1f} GiB of memory left to this container",
                    f"the machine itself has {available / _GIB:.0f} GiB available",
                    "give the container more: ranks and workers need about 1 GiB each",
                    "docker run --memory=64g ...",
                )
            return ok("H155", f"{limited / _GIB:.0f} GiB of memory left to this container")
    except (ImportError, OSError) as error:
        return unknown("H155", "memory", str(error))
    if available < 2 * _GIB:
        return warn(
            "H155",
            f"{available / _GIB:.1f} GiB of memory available",
            "ranks and workers need about 1 GiB each",
            "end other programs, or start fewer ranks and workers",
        )
    return ok("H155", f"{available / _GIB:.0f} GiB of memory available")


def _numa() -> Finding:
    nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
    if len(nodes) > 1:
        return ok("H156", f"{len(nodes)} NUMA nodes", "--bind-cores keeps each rank on its own cores")
    return skip("H156", "NUMA", "one node")
