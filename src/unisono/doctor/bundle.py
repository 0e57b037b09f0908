"""What a bug report needs, in one file, without secrets, names and addresses."""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
import zipfile
from collections.abc import Mapping
from pathlib import Path

from unisono.doctor.finding import Finding

_SECRET_NAME = re.compile(
    r"(?i)(token|secret|passw|passphrase|api_?key|access_?key|credential|auth|cookie|private|session)"
)
_WANTED = re.compile(
    r"^(ASCEND|HCCL|NCCL|GLOO|TORCH|PYTORCH|CUDA|NVIDIA|OMP|MKL|RANK|WORLD_SIZE|LOCAL_|MASTER_|SLURM_(NTASKS|PROCID|LOCALID)|TASK_QUEUE|UNISONO|PYTHON|LANG|LC_)"
)
_IPV4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6 = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{0,4}(?![\w:])|(?<![\w:])fe80::[0-9a-fA-F:]+")
_MAC = re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}(?![\w:])")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_ASSIGNED = re.compile(
    r"(?i)((?:token|secret|passw(?:or)?d|api_?key|access_?key|authorization)\w*\s*[=:]\s*(?:bearer\s+)?)(\S+)"
)
_URL_LOGIN = re.compile(r"(\w+://)[^/\s:@]+:[^/\s@]+@")
_KEYS = re.compile(r"\b(?:ghp|gho|hf|sk|glpat|xox[bp]|AKIA)[-_]?[A-Za-z0-9_-]{12,}\b")


def redact(text: str, names: Mapping[str, str] | None = None) -> str:
    """Take secrets, host and user names, home folders, addresses out of a text."""
    for pattern, instead in (
        (_URL_LOGIN, r"\1<login>@"),
        (_ASSIGNED, r"\1<secret>"),
        (_KEYS, "<secret>"),
        (_MAIL, "<mail>"),
    ):
        text = pattern.sub(instead, text)
    for name, instead in (own_names() if names is None else names).items():
        if len(name) > 2:
            text = re.sub(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", instead, text)
    text = re.sub(r"(/home/|/Users/)[^/\s:]+", r"\1<user>", text)
    for pattern, instead in ((_MAC, "<mac>"), (_IPV4, "<address>"), (_IPV6, "<address>")):
        text = pattern.sub(instead, text)
    return text


def own_names() -> dict[str, str]:
    """Names of this machine and user, and what stands for them."""
    names = {socket.gethostname(): "<host>", socket.gethostname().split(".")[0]: "<host>"}
    with contextlib.suppress(OSError, KeyError):
        names[getpass.getuser()] = "<user>"
    names.pop("root", None)
    names.pop("localhost", None)
    return names


def safe_environment(env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The variables that matter here, redacted; those whose names promise secrets are left out whole."""
    env = os.environ if env is None else env
    return {
        name: redact(value)
        for name, value in sorted(env.items())
        if _WANTED.match(name) and not _SECRET_NAME.search(name)
    }


def write_bundle(path: Path, findings: Mapping[str, list[Finding]], run_dir: Path | None = None) -> list[str]:
    """Write the zip; returns the names in it."""
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
            bundle.writestr(name, redact(text))
    return list(documents)
