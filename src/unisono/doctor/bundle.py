"""What a bug report needs, in one file, without secrets, names and addresses."""

from __future__ import annotations

import contextlib
import getpass
import ipaddress
import json
import os
import re
import socket
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from unisono.doctor.finding import Finding

_SECRET_NAME = re.compile(
    r"(?i)(token|secret|passw|passphrase|api_?key|access_?key|credential|auth|cookie|private|session)"
)
_WANTED = re.compile(
    r"^(ASCEND|HCCL|NCCL|GLOO|TORCH|PYTORCH|CUDA|NVIDIA|OMP|MKL|RANK|WORLD_SIZE|LOCAL_|MASTER_|SLURM_(NTASKS|PROCID|LOCALID)|TASK_QUEUE|UNISONO|PYTHON|LANG|LC_)"
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_MAYBE_IPV6 = re.compile(r"(?<![\w:])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:%\w+)?(?![\w:])")
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:])")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_SECRET_WORD = (
    r"(?:token|secret|passw(?:or)?d|passphrase|passwd|api[_-]?key|access[_-]?key|private[_-]?key|authorization|cookie)"
)
_ASSIGNED = re.compile(
    rf"(?i)([\w-]*{_SECRET_WORD}[\w-]*[\"']?\s*[=:]\s*[\"']?(?:(?:bearer|basic|token)\s+)?)([^\s\"',;}}]+)"
)
_OPTION = re.compile(rf"(?i)(--?[\w-]*{_SECRET_WORD}[\w-]*\s+[\"']?)([^\s\"',]+)")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}")
_JWT = re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*")
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)
_DOMAIN = re.compile(
    r"(?<![\w@/.-])(?:[A-Za-z0-9-]+\.)+(?:local|internal|intranet|lan|corp|cluster|svc|home)\b(?:\.\w+)*"
)
_URL_LOGIN = re.compile(r"(\w+://)[^/\s:@]+:[^/\s@]+@")
_KEYS = re.compile(r"\b(?:ghp|gho|hf|sk|glpat|xox[bp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}\b")


def redact(text: str, names: Mapping[str, str] | None = None) -> str:
    """Take secrets, host and user names, home folders, addresses out of a text."""
    for pattern, instead in (
        (_URL_LOGIN, r"\1<login>@"),
        (_KEY_BLOCK, "<secret>"),
        (_JWT, "<secret>"),
        (_ASSIGNED, r"\1<secret>"),
        (_OPTION, r"\1<secret>"),
        (_BEARER, r"\1<secret>"),
        (_KEYS, "<secret>"),
        (_MAIL, "<mail>"),
    ):
        text = pattern.sub(instead, text)
    known = own_names() if names is None else names
    # The longest first, so that no domain is left behind a short name.
    for name, instead in sorted(known.items(), key=lambda pair: -len(pair[0])):
        if name:
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", instead, text)
    text = re.sub(r"(/home/|/Users/)[^/\s:]+", r"\1<user>", text)
    for pattern, instead in ((_DOMAIN, "<host>"), (_MAC, "<mac>"), (_IPV4, "<address>")):
        text = pattern.sub(instead, text)
    return _MAYBE_IPV6.sub(_address, text)


def _address(match: re.Match[str]) -> str:
    """Times of day look like addresses and are none."""
    try:
        ipaddress.IPv6Address(match[0])
    except ValueError:
        return match[0]
    return "<address>"


def own_names(others: Iterable[str] = (), env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Names of this machine, its user and the other machines, and what stands for them.

    Args:
        others: host names that the user gave.
    """
    env = os.environ if env is None else env
    hosts = [socket.gethostname(), *others, *re.split(r"[,\s]+", env.get("SLURM_JOB_NODELIST", ""))]
    hosts += [env.get(name, "") for name in ("MASTER_ADDR", "HOSTNAME", "SLURMD_NODENAME", "SLURM_LAUNCH_NODE_IPADDR")]
    names = {name: "<host>" for host in hosts for name in (host.partition(":")[0], host.split(".")[0])}
    users = [env.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")]
    with contextlib.suppress(OSError, KeyError):
        users.append(getpass.getuser())
    names |= dict.fromkeys(users, "<user>")
    return {name: instead for name, instead in names.items() if name not in ("", "root", "localhost", "127")}


def safe_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that matter here, redacted; those whose names promise secrets are left out whole."""
    env = os.environ if env is None else env
    return {
        name: redact(value)
        for name, value in sorted(env.items())
        if _WANTED.match(name) and not _SECRET_NAME.search(name)
    }


def write_bundle(
    path: Path, findings: Mapping[str, list[Finding]], run_dir: Path | None = None, others: Iterable[str] = ()
) -> list[str]:
    """Write the zip; returns the names in it.

    Args:
        others: names of other machines, which are taken out too.
    """
    names = own_names(others)
    documents = {
        "findings.json": json.dumps(
            {theme: [finding.to_plain() for finding in rows] for theme, rows in findings.items()},
            indent=2,
            ensure_ascii=False,
        ),
        "environment.json": json.dumps(safe_environment(), indent=2),
    }
    if run_dir is not None and run_dir.is_dir():
        for file in sorted([*run_dir.glob("*.json"), *run_dir.glob("logs/*.log")]):
            documents[f"run/{file.relative_to(run_dir).as_posix()}"] = file.read_text(
                encoding="utf-8", errors="replace"
            )[-200_000:]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in documents.items():
            bundle.writestr(name, redact(text, names))
    return list(documents)
