"""K: shell scripts, configuration files and requirement lists around the sources. Scanned by line; changed on request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from unisono.migrate.findings import FileResult, Finding, FixKind, Options, RuleInfo, Target
from unisono.migrate.knowledge import variables

RULES = (
    RuleInfo("K101", "an environment variable in a script", FixKind.SAFE),
    RuleInfo("K102", "a variable whose value is written differently, or without counterpart", FixKind.MANUAL),
    RuleInfo("K103", "a backend on a command line", FixKind.SAFE),
    RuleInfo("K104", "torch.distributed.launch on a command line", FixKind.UNSAFE),
    RuleInfo("K105", "a tool of the CUDA toolkit or driver", FixKind.MANUAL),
    RuleInfo("K106", "a device on a command line", FixKind.SAFE),
    RuleInfo("K201", "a device or backend in a configuration", FixKind.SAFE),
    RuleInfo("K202", "CUDA code in a notebook", FixKind.MANUAL),
    RuleInfo("K301", "a package that is CUDA code", FixKind.MANUAL),
    RuleInfo("K302", "a CUDA build of PyTorch", FixKind.MANUAL),
    RuleInfo("K401", "CUDA sources", FixKind.MANUAL),
    RuleInfo("K402", "a container image with CUDA", FixKind.MANUAL),
)
SHELL = {".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".pbs", ".bat", ".ps1"}
CONFIG = {".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".gin"}
CUDA_SOURCE = {".cu", ".cuh"}
NAMED = ("dockerfile", "makefile", "containerfile")


@dataclass(frozen=True, slots=True)
class LineRule:
    """A pattern, and how what it matched is answered: the new text, or None with advice."""

    code: str
    pattern: re.Pattern[str]
    why: str
    advice: str
    new: Callable[[re.Match[str]], str] | None = None


def _npu_variable(match: re.Match[str]) -> str:
    return variables()[match.group(0)].npu


_RENAMED = "|".join(
    sorted((v.name for v in variables().values() if v.kind in ("rename", "unsafe")), key=len, reverse=True)
)
_OTHERS = "|".join(sorted((v.name for v in variables().values() if v.kind == "manual"), key=len, reverse=True))

_VARIABLES = (
    LineRule(
        "K101", re.compile(rf"\b({_RENAMED})\b(?!['\"]?\))"), "NPUs read it under another name", "", _npu_variable
    ),
    LineRule(
        "K102",
        re.compile(rf"\b({_OTHERS}|NCCL_[A-Z0-9_]+)\b"),
        "HCCL does not read it",
        "see the table of variables in docs/migrate.md",
    ),
)
_SHELL = (
    *_VARIABLES,
    LineRule(
        "K103",
        re.compile(r"(?<=backend[ =])[\"']?nccl\b"),
        "NPUs communicate over HCCL",
        "",
        lambda m: m.group(0).replace("nccl", "hccl"),
    ),
    LineRule(
        "K104",
        re.compile(r"\S*python[\d.]*\s+(?:-u\s+)?-m\s+torch\.distributed\.(?:launch|run)\b(?:\s+--use[_-]env\b)?"),
        "torch.distributed.launch is deprecated; the script reads LOCAL_RANK from the environment",
        "",
        lambda m: "torchrun",
    ),
    LineRule(
        "K105",
        re.compile(r"\b(nvidia-smi|nvcc|nsys|ncu|nvprof|cuda-memcheck|compute-sanitizer)\b"),
        "there is no such tool for NPUs",
        "npu-smi info, or msprof for profiles",
    ),
    LineRule(
        "K105",
        re.compile(r"module\s+load\s+\S*cuda\S*|/usr/local/cuda\S*"),
        "CUDA's files are not used",
        "source CANN's set_env.sh",
    ),
    LineRule(
        "K106",
        re.compile(r"(?<=--device[ =])[\"']?cuda(?=[:\"'\s]|$)"),
        "the device type is npu",
        "",
        lambda m: m.group(0).replace("cuda", "npu"),
    ),
    LineRule(
        "K106",
        re.compile(r"--gres=gpu\b\S*|--gpus(?:-per-\w+)?[= ]\S+"),
        "the scheduler is asked for GPUs",
        "the resource name that your cluster gives NPUs",
    ),
)
_CONFIG = (
    *_VARIABLES,
    LineRule(
        "K201", re.compile(r"((?:device|backend|accelerator)\w*[\"']?\s*[:=]\s*[\"']?)(cuda|nccl|gpu)\b", re.IGNORECASE),
        "the device type is npu and the backend hccl", "",
        lambda m: m.group(1) + {"cuda": "npu", "nccl": "hccl", "gpu": "npu"}[m.group(2).lower()],
    ),
)  # fmt: skip
_NOTEBOOK = (
    LineRule(
        "K202",
        re.compile(r"torch\.cuda\b|\.cuda\(|['\"\\]cuda(?::\d)?\\?['\"]|\bnccl\b"),
        "code in a notebook is not rewritten",
        "export it as a script, migrate that, and bring it back",
    ),
)
_REQUIREMENTS = (
    LineRule(
        "K301",
        re.compile(
            r"^\s*[\"'-]*\s*((?:nvidia|cupy|cudf|cuml)[\w.-]*|pynvml|py3nvml|gpustat|gputil|nvitop|apex|horovod|bitsandbytes|flash-attn|xformers|triton|onnxruntime-gpu|faiss-gpu|tensorrt|torch-tensorrt|pycuda|transformer-engine|cuda(?:toolkit|-python))\b",
            re.IGNORECASE,
        ),
        "the package is CUDA code",
        "remove it; docs/migrate.md lists what takes its place",
    ),
    LineRule(
        "K302",
        re.compile(r"^\s*(torch\w*)\S*\+cu\d+|(?:index-url|find-links|-f)\s*=?\s*\S*/cu\d+|pytorch-cuda\S*"),
        "a CUDA build of PyTorch",
        "the CPU build of the same version, and torch_npu of that version",
    ),
)
_DOCKER = (
    LineRule(
        "K402",
        re.compile(r"^\s*FROM\s+\S*(?:nvidia|cuda)\S*", re.IGNORECASE),
        "the image holds CUDA",
        "an image with CANN, for example one of ascendai",
    ),
    LineRule(
        "K301",
        re.compile(r"\b(nvidia-[\w-]+|cupy[\w-]*|onnxruntime-gpu|horovod|flash-attn)\b"),
        "the package is CUDA code",
        "remove it",
    ),
)


def is_config(path: PurePath) -> bool:
    """True for files that this module scans."""
    return _rules_for(path) is not None or path.suffix.lower() in CUDA_SOURCE


def _rules_for(path: PurePath) -> tuple[LineRule, ...] | None:
    name, suffix = path.name.lower(), path.suffix.lower()
    if name.startswith(("requirements", "constraints")) and suffix in ("", ".txt", ".in"):
        return _REQUIREMENTS
    if name in ("environment.yml", "environment.yaml", "pyproject.toml", "setup.cfg", "pipfile", "conda.yaml"):
        return (*_REQUIREMENTS, *_CONFIG)
    if name.startswith(NAMED):
        return (*_DOCKER, *_SHELL)
    if suffix == ".ipynb":
        return _NOTEBOOK
    if suffix in SHELL:
        return _SHELL
    return _CONFIG if suffix in CONFIG else None


def scan_text(text: str, options: Options, path: str) -> FileResult:
    """Findings of one file by line. Its text is changed only where `options.configs` asks for it, and only for npu."""
    file = PurePath(path)
    lines = text.count("\n") + 1
    if file.suffix.lower() in CUDA_SOURCE:
        finding = Finding(
            "K401",
            path,
            1,
            1,
            1,
            file.name,
            "CUDA sources are compiled for GPUs",
            FixKind.MANUAL,
            "torch operators, or an Ascend C kernel",
        )
        return FileResult(path, text, text, (finding,) if options.wants("K401") else (), lines=lines)
    rules = _rules_for(file) or ()
    findings: list[Finding] = []
    out: list[str] = []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        new = line
        if not _is_comment(line, file):
            new, found = _scan_line(line, number, rules, options, path)
            findings += found
        out.append(new)
    return FileResult(path, text, "".join(out), tuple(findings), lines=lines)


def _is_comment(line: str, file: PurePath) -> bool:
    start = line.lstrip()
    if start.startswith("#SBATCH"):
        return False
    return start.startswith(("#", "//", ";")) or (file.suffix.lower() == ".bat" and start.lower().startswith("rem "))


def _scan_line(
    line: str, number: int, rules: tuple[LineRule, ...], options: Options, path: str
) -> tuple[str, list[Finding]]:
    findings: list[Finding] = []
    taken: list[tuple[int, int]] = []
    edits: list[tuple[int, int, str]] = []
    code_end = _code_end(line)
    for rule, match in _matches(line, rules):
        start, end = match.span()
        if start >= code_end or not options.wants(rule.code) or any(start < e and s < end for s, e in taken):
            continue
        taken.append((start, end))
        new = rule.new(match) if rule.new is not None else None
        fixed = new is not None and options.configs and options.target is Target.NPU
        kind = next(r.fix_kind for r in RULES if r.code == rule.code)
        fixed = fixed and not (options.safe_only and kind is not FixKind.SAFE)
        advice = (
            rule.advice if new is None else f"write {new}" if options.target is Target.NPU else f"write {new} on NPUs"
        )
        findings.append(
            Finding(
                rule.code,
                path,
                number,
                start + 1,
                number,
                line.strip()[:160],
                rule.why,
                kind,
                "" if fixed else advice,
                fixed,
            )
        )
        if fixed and new is not None:
            edits.append((start, end, new))
    for start, end, new in sorted(edits, reverse=True):
        line = line[:start] + new + line[end:]
    return line, findings


def _matches(line: str, rules: tuple[LineRule, ...]) -> Iterator[tuple[LineRule, re.Match[str]]]:
    for rule in rules:
        for match in rule.pattern.finditer(line):
            yield rule, match


def _code_end(line: str) -> int:
    """Where a comment at the end of the line starts."""
    found = re.search(r"\s#(?!SBATCH)", line)
    return found.start() if found is not None and "http" not in line[: found.start()] else len(line)
