"""Environment variables: set_env.sh, contradictions, time-outs out of order."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

from unisono.doctor.finding import Finding, fail, ok, skip, warn

# Defaults in seconds. Sources: torch_npu's and HCCL's documentation of environment variables; ProcessGroupHCCL's limit.
_CONNECT_DEFAULT, _EXEC_DEFAULT, _EVENT_DEFAULT = 120, 1836, 1868
_BASE_PORT = 60000
_SET_ENV = (
    "/usr/local/Ascend/cann/set_env.sh",
    "/usr/local/Ascend/ascend-toolkit/set_env.sh",
    "/usr/local/Ascend/nnae/set_env.sh",
)


def check_environment(env: Mapping[str, str] | None = None) -> Iterator[Finding]:
    """H110-H119, H122, H123."""
    env = os.environ if env is None else env
    yield _set_env(env)
    yield _timeouts(env)
    yield _allocators(env)
    yield _interfaces(env)
    yield _ports(env)
    yield _meeting_port(env)
    yield from _habits(env)
    yield _ranks(env)


def _set_env(env: Mapping[str, str]) -> Finding:
    scripts = [path for path in _SET_ENV if Path(path).is_file()]
    if env.get("ASCEND_TOOLKIT_HOME") or env.get("ASCEND_HOME_PATH"):
        home = Path(env.get("ASCEND_TOOLKIT_HOME") or env["ASCEND_HOME_PATH"])
        if home.is_dir():
            return ok("H110", "CANN's environment is set", str(home))
        return fail(
            "H110",
            "CANN's environment leads nowhere",
            f"{home} is no folder",
            "source the set_env.sh of the CANN that is installed",
            f"source {scripts[0]}" if scripts else "",
        )
    if scripts:
        return fail(
            "H110",
            "set_env.sh was not sourced in this shell",
            "ASCEND_TOOLKIT_HOME is not set",
            "source it, and put the line into your shell's start file",
            f"source {scripts[0]}",
        )
    return skip("H110", "CANN's environment", "no CANN here")


def _timeouts(env: Mapping[str, str]) -> Finding:
    names = ("HCCL_CONNECT_TIMEOUT", "HCCL_EXEC_TIMEOUT", "HCCL_EVENT_TIMEOUT")
    if not any(env.get(name) for name in names):
        return skip("H111", "HCCL time-outs", "none set; the defaults are in order")
    try:
        connect, execute, event = (
            int(env.get(name) or default)
            for name, default in zip(names, (_CONNECT_DEFAULT, _EXEC_DEFAULT, _EVENT_DEFAULT), strict=True)
        )
    except ValueError:
        return fail(
            "H111",
            "an HCCL time-out is no number",
            ", ".join(f"{name}={env[name]}" for name in names if env.get(name)),
            "write whole seconds",
            "unset " + " ".join(names),
        )
    evidence = f"connect {connect} s, execute {execute} s, event {event} s"
    if not 120 <= connect <= 7200:
        return fail(
            "H111",
            "HCCL_CONNECT_TIMEOUT is out of range",
            evidence,
            "it is 120 to 7200",
            "export HCCL_CONNECT_TIMEOUT=600",
        )
    if not connect < execute < event and execute != 0 and event != 0:
        return warn(
            "H111",
            "HCCL time-outs are out of order",
            evidence,
            "keep connect < execute < event, so that the error names the cause",
            f"export HCCL_EXEC_TIMEOUT={max(execute, connect + 60)} HCCL_EVENT_TIMEOUT={max(execute, connect + 60) + 60}",
        )
    return ok("H111", "HCCL time-outs are in order", evidence)


def _allocators(env: Mapping[str, str]) -> Finding:
    both = [name for name in ("PYTORCH_NPU_ALLOC_CONF", "PYTORCH_ALLOC_CONF") if env.get(name)]
    if len(both) == 2:
        return fail(
            "H112",
            "two allocator variables are set",
            " and ".join(both),
            "torch_npu takes one of them and refuses both",
            "unset PYTORCH_ALLOC_CONF",
        )
    conf = env.get("PYTORCH_NPU_ALLOC_CONF", "")
    if "expandable_segments:True" in conf.replace(" ", "") and (
        "max_split_size_mb" in conf or "garbage_collection_threshold" in conf
    ):
        return fail(
            "H112",
            "allocator options exclude each other",
            conf,
            "expandable_segments goes without max_split_size_mb and garbage_collection_threshold",
            "export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True",
        )
    return ok("H112", "allocator settings agree", conf)


def _interfaces(env: Mapping[str, str]) -> Finding:
    name = env.get("HCCL_SOCKET_IFNAME") or env.get("GLOO_SOCKET_IFNAME") or env.get("NCCL_SOCKET_IFNAME")
    address = env.get("HCCL_IF_IP")
    if env.get("HCCL_IF_IP") and env.get("HCCL_SOCKET_IFNAME"):
        return warn(
            "H113",
            "HCCL_IF_IP and HCCL_SOCKET_IFNAME are both set",
            f"{address}, {name}",
            "HCCL_IF_IP wins; unset one",
            "unset HCCL_SOCKET_IFNAME",
        )
    wanted = (name or "").lstrip("^=").split(",")[0]
    try:
        there = os.listdir("/sys/class/net")
    except OSError:
        there = []
    if wanted and there and not (name or "").startswith("^") and not any(card.startswith(wanted) for card in there):
        return fail(
            "H113",
            "the network card named is not here",
            f"{wanted}; here: {', '.join(sorted(there))}",
            "name one that is",
            f"export HCCL_SOCKET_IFNAME={next((c for c in sorted(there) if c != 'lo'), 'lo')}",
        )
    return ok("H113", "network card settings agree", name or address or "")


def _ports(env: Mapping[str, str]) -> Finding:
    text = env.get("HCCL_IF_BASE_PORT")
    if not text:
        if not env.get("ASCEND_TOOLKIT_HOME") and not env.get("ASCEND_HOME_PATH"):
            return skip("H114", "HCCL_IF_BASE_PORT", f"not set; {_BASE_PORT} to {_BASE_PORT + 31} are used")
        text = str(_BASE_PORT)
    if not re.fullmatch("[0-9]{1,6}", text) or not 1024 <= int(text) <= 65520:
        return fail("H114", "HCCL_IF_BASE_PORT is out of range", text, "it is 1024 to 65520", "unset HCCL_IF_BASE_PORT")
    taken = [port for port in range(int(text), min(int(text) + 32, 65536)) if not _is_free(port)]
    if taken and "RANK" not in env:
        return warn(
            "H114",
            "HCCL's ports are taken",
            f"{', '.join(map(str, taken[:6]))} of {text} to {int(text) + 31}",
            "end the job that holds them, or choose another range",
            f"export HCCL_IF_BASE_PORT={_free_range(int(text))}",
        )
    return ok("H114", f"HCCL's ports from {text}", "32 ports are free" if not taken else "in use by this job")


def _meeting_port(env: Mapping[str, str]) -> Finding:
    """A MASTER_PORT left in a shell's start file makes every second job fail; a rank's own is in use by its job."""
    text = env.get("MASTER_PORT")
    if not text or "RANK" in env:
        return skip("H122", "MASTER_PORT", "not set" if not text else "in use by this job")
    if not re.fullmatch("[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        return fail("H122", "MASTER_PORT is no port", text, "it is 1 to 65535", "unset MASTER_PORT")
    if not _is_free(int(text)):
        return fail(
            "H122",
            "MASTER_PORT is taken",
            f"another program listens on {text}",
            "unset it (launchers choose a free one), or end the job that holds it",
            "unset MASTER_PORT",
        )
    return ok("H122", f"MASTER_PORT {text} is free")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _free_range(taken: int) -> int:
    """The start of 32 free ports, looked for upwards from a taken range and round again."""
    for base in chain(range(taken + 32, 65488, 32), range(20000, taken, 32)):
        if all(_is_free(port) for port in range(base, base + 32)):
            return base
    return 60000


def _habits(env: Mapping[str, str]) -> Iterator[Finding]:
    if env.get("ASCEND_LAUNCH_BLOCKING") == "1" and env.get("TASK_QUEUE_ENABLE") in ("1", "2"):
        yield warn(
            "H119",
            "ASCEND_LAUNCH_BLOCKING=1 switches the task queue off",
            f"TASK_QUEUE_ENABLE={env['TASK_QUEUE_ENABLE']} has no effect beside it",
            "keep one of the two",
            "unset ASCEND_LAUNCH_BLOCKING",
        )
    if env.get("INF_NAN_MODE_ENABLE") == "1" and env.get("INF_NAN_MODE_FORCE_DISABLE") == "1":
        yield fail(
            "H119",
            "INF_NAN_MODE is both on and off",
            "INF_NAN_MODE_ENABLE=1, INF_NAN_MODE_FORCE_DISABLE=1",
            "keep infinities on, so that an overflow is seen",
            "unset INF_NAN_MODE_FORCE_DISABLE",
        )
    names = {
        name: env[name] for name in ("HCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") if env.get(name)
    }
    if len({value.lstrip("=") for value in names.values()}) > 1:
        yield warn(
            "H119",
            "backends are sent through different network cards",
            ", ".join(f"{name}={value}" for name, value in names.items()),
            "right only where both reach every machine; else name one card in all of them",
        )
    yield from _rounding(env)
    if env.get("ASCEND_LAUNCH_BLOCKING") == "1":
        yield warn(
            "H115",
            "ASCEND_LAUNCH_BLOCKING=1 slows every operator",
            "meant for finding a fault",
            "unset it for real runs",
            "unset ASCEND_LAUNCH_BLOCKING",
        )
    if env.get("CUDA_LAUNCH_BLOCKING") == "1":
        yield warn(
            "H115",
            "CUDA_LAUNCH_BLOCKING=1 slows every kernel",
            "meant for finding a fault",
            "unset it for real runs",
            "unset CUDA_LAUNCH_BLOCKING",
        )
    if env.get("ASCEND_GLOBAL_LOG_LEVEL") in ("0", "1"):
        yield warn(
            "H116",
            "CANN logs much",
            f"ASCEND_GLOBAL_LOG_LEVEL={env['ASCEND_GLOBAL_LOG_LEVEL']}",
            "3 (errors) is enough for training",
            "export ASCEND_GLOBAL_LOG_LEVEL=3",
        )
    if env.get("HCCL_WHITELIST_DISABLE") == "0" and not env.get("HCCL_WHITELIST_FILE"):
        yield fail(
            "H117",
            "HCCL's white list is on and there is none",
            "HCCL_WHITELIST_DISABLE=0 without HCCL_WHITELIST_FILE",
            "switch it off or give the file",
            "export HCCL_WHITELIST_DISABLE=1",
        )
    if env.get("TASK_QUEUE_ENABLE") == "0":
        yield warn(
            "H116", "TASK_QUEUE_ENABLE=0 slows launching", "the default is 1", "unset it", "unset TASK_QUEUE_ENABLE"
        )


def _rounding(env: Mapping[str, str]) -> Iterator[Finding]:
    """Switches that round fp32 to TF32 behind a program's back; hf32 has none, torch_npu turns it on for convolutions itself."""
    override, cublas = env.get("NVIDIA_TF32_OVERRIDE"), env.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE")
    if override == "0" and cublas == "1":
        yield warn(
            "H123",
            "TF32 is both asked for and switched off",
            "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1, NVIDIA_TF32_OVERRIDE=0",
            "NVIDIA_TF32_OVERRIDE wins; keep one of the two",
            "unset TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
        )
    elif "1" in (override, cublas):
        name = "NVIDIA_TF32_OVERRIDE" if override == "1" else "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"
        yield warn(
            "H123",
            "fp32 is computed as TF32",
            f"{name}=1",
            "accuracies and digests part from those of fp32; a program that asks for fp32 is not told",
            f"unset {name}",
        )


def _ranks(env: Mapping[str, str]) -> Finding:
    present = [name for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK") if env.get(name)]
    if present and len(present) < 3:
        return fail(
            "H118",
            "rank variables are half set",
            ", ".join(f"{name}={env[name]}" for name in present),
            "unset them, or start through a launcher",
            "unset " + " ".join(present),
        )
    return ok("H118", "rank variables are whole or absent")
