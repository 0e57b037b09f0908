"""Devices: are they there, healthy, cool, free, and all of them visible."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from unisono.doctor.commands import run
from unisono.doctor.finding import Finding, fail, ok, skip, unknown, warn
from unisono.doctor.npu_smi import NpuInfo, parse_npu_smi

_HOT_C = 85
# Firmware and the driver keep a few GiB; a free 64 GiB card shows about 3.4 GiB.
_FREE_SHARE = 0.12


def check_npus() -> Iterator[Finding]:
    """H130-H135: npu-smi's table, and its counts of errors in memory."""
    output = run(["npu-smi", "info"], 20)
    if not output.found:
        yield skip("H130", "NPUs", "no npu-smi here")
        return
    if output.timed_out:
        yield fail(
            "H130",
            "npu-smi does not answer",
            output.text,
            "a card or the driver hangs: look at dmesg, then reboot or reset the card",
        )
        return
    info = parse_npu_smi(output.text)
    if not info.chips:
        yield fail(
            "H130",
            "npu-smi lists no NPU",
            _first_line(output.text),
            "check driver and permissions (group HwHiAiUser); in a container map /dev/davinci*, davinci_manager, devmm_svm, hisi_hdc",
        )
        return
    names = sorted({chip.name for chip in info.chips})
    yield ok("H130", f"{len(info.chips)} NPU chips ({', '.join(names)})", f"npu-smi {info.version}")
    yield _health(info)
    yield _temperature(info)
    yield _leftovers(info)
    yield _visible(info)
    yield _npu_ecc(info)


def _health(info: NpuInfo) -> Finding:
    ill = [
        f"NPU {chip.card} chip {chip.chip}: {chip.health or 'no word'}" for chip in info.chips if chip.health != "OK"
    ]
    if not ill:
        return ok("H131", "all chips are healthy")
    card = next(chip.card for chip in info.chips if chip.health != "OK")
    serious = any(chip.health in ("Alarm", "Critical", "Offline") for chip in info.chips)
    make = fail if serious else warn
    return make(
        "H131",
        "a chip is not healthy",
        "; ".join(ill),
        "read its error codes, reset the card when idle, else have it replaced",
        f"npu-smi info -t health -i {card}",
    )


def _temperature(info: NpuInfo) -> Finding:
    known = [chip for chip in info.chips if chip.temperature_c is not None]
    if not known:
        return unknown("H132", "temperature not shown")
    hottest = max(known, key=lambda chip: chip.temperature_c or 0)
    text = f"NPU {hottest.card}: {hottest.temperature_c} C"
    if (hottest.temperature_c or 0) >= _HOT_C:
        return warn("H132", "a chip is hot and will slow down", text, "check fans and air flow")
    return ok("H132", "temperatures are fine", f"hottest {text}")


def _leftovers(info: NpuInfo) -> Finding:
    if info.processes:
        held = ", ".join(f"{p.name} (pid {p.pid}) on NPU {p.card}" for p in info.processes[:6])
        pids = " ".join(str(pid) for pid in sorted({p.pid for p in info.processes}))
        return warn(
            "H133",
            f"{len(info.processes)} processes hold chips",
            held,
            "end them if they are left over, and wait ten seconds",
            f"kill {pids}",
        )
    full = [
        chip
        for chip in info.chips
        if chip.memory_used_mb is not None
        and chip.memory_total_mb
        and chip.memory_used_mb / chip.memory_total_mb > _FREE_SHARE
    ]
    if full:
        text = ", ".join(f"NPU {chip.card}: {chip.memory_used_mb} of {chip.memory_total_mb} MB" for chip in full[:6])
        return warn(
            "H133",
            "memory in use and no process shown",
            text,
            "another container may hold the card; ask npu-smi on the host",
        )
    return ok("H133", "no process holds a chip")


def _visible(info: NpuInfo) -> Finding:
    asked = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if asked is None:
        return ok("H134", "all chips are visible to this process")
    numbers = [part.strip() for part in asked.split(",")]
    if not all(re.fullmatch("[0-9]{1,4}", part) for part in numbers) or len(set(numbers)) != len(numbers):
        return fail(
            "H134",
            "ASCEND_RT_VISIBLE_DEVICES is malformed",
            asked,
            "write device numbers once each, such as 0,1,2,3",
            "unset ASCEND_RT_VISIBLE_DEVICES",
        )
    if any(int(part) >= len(info.chips) for part in numbers):
        return fail(
            "H134",
            "ASCEND_RT_VISIBLE_DEVICES names chips that are not here",
            f"{asked} with {len(info.chips)} chips",
            f"use numbers below {len(info.chips)}",
            "unset ASCEND_RT_VISIBLE_DEVICES",
        )
    if numbers != sorted(numbers, key=int):
        return warn(
            "H134",
            "ASCEND_RT_VISIBLE_DEVICES is not in order",
            asked,
            "numbers after the first that falls are ignored; write them rising",
        )
    return ok("H134", f"{len(numbers)} of {len(info.chips)} chips are visible", f"ASCEND_RT_VISIBLE_DEVICES={asked}")


def _npu_ecc(info: NpuInfo) -> Finding:
    """Errors of two bits in a chip's memory since it was started: a job that meets one dies with 507054 or EL0001."""
    counts = {
        card: double_bit_errors(run(["npu-smi", "info", "-i", str(card), "-t", "ecc"], 20).text)
        for card in sorted({chip.card for chip in info.chips})
    }
    known = {card: count for card, count in counts.items() if count is not None}
    if not known:
        return skip("H135", "ECC of NPUs", "npu-smi does not tell it here")
    ill = {card: count for card, count in known.items() if count}
    if ill:
        return fail(
            "H135",
            "an NPU's memory has errors that ECC cannot mend",
            ", ".join(f"NPU {card}: {count} errors of two bits" for card, count in ill.items()),
            "leave the card out, reset it when idle, and have it replaced when they come back",
            f"npu-smi info -t ecc -i {min(ill)}",
        )
    return ok("H135", "no errors of two bits in the NPUs' memory")


def double_bit_errors(text: str) -> int | None:
    """The sum of the counts of double bit errors in npu-smi's answer about ECC; None when it holds none."""
    counts = re.findall(r"Double Bit Error Count\s*:\s*([0-9]{1,12})\b", text)
    return sum(map(int, counts)) if counts else None


def check_gpus() -> Iterator[Finding]:
    """H140-H144: nvidia-smi."""
    query = "index,name,temperature.gpu,memory.used,memory.total"
    output = run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20)
    if not output.found:
        yield skip("H140", "GPUs", "no nvidia-smi here")
        return
    rows = [
        [cell.strip() for cell in line.split(",")]
        for line in output.text.splitlines()
        if line.count(",") == query.count(",")
    ]
    if output.code or not rows:
        yield fail(
            "H140",
            "nvidia-smi shows no GPU",
            _first_line(output.text),
            "install or reload the NVIDIA driver; in a container start with --gpus all",
        )
        return
    yield ok("H140", f"{len(rows)} GPUs ({', '.join(sorted({row[1] for row in rows}))})")
    hot = [f"GPU {row[0]}: {row[2]} C" for row in rows if (_number(row[2]) or 0) >= _HOT_C]
    yield (
        warn("H141", "a GPU is hot and will slow down", ", ".join(hot), "check fans and air flow")
        if hot
        else ok("H141", "temperatures are fine")
    )
    yield _gpu_memory(rows)
    yield _gpu_ecc()
    yield _visible_gpus(len(rows))


def _gpu_ecc() -> Finding:
    query = "index,ecc.errors.uncorrected.volatile.total"
    text = run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20).text
    counts = {
        index.strip(): number
        for index, comma, count in (line.partition(",") for line in text.splitlines())
        if comma and (number := _number(count.strip())) is not None
    }
    if not counts:
        return skip("H143", "ECC of GPUs", "these have none, or nvidia-smi does not tell it")
    ill = {index: count for index, count in counts.items() if count}
    if ill:
        return fail(
            "H143",
            "a GPU's memory has errors that ECC cannot mend",
            ", ".join(f"GPU {index}: {count}" for index, count in ill.items()),
            "leave the GPU out, reset it when idle, and have it replaced when they come back",
            f"nvidia-smi -q -d ECC -i {next(iter(ill))}",
        )
    return ok("H143", "no errors in the GPUs' memory that ECC could not mend")


def _visible_gpus(count: int) -> Finding:
    asked = os.environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return ok("H144", "all GPUs are visible to this process")
    names = [part.strip() for part in asked.split(",")]
    if asked.strip() in ("", "-1", "NoDevFiles"):
        return warn(
            "H144",
            "CUDA_VISIBLE_DEVICES hides every GPU",
            f"CUDA_VISIBLE_DEVICES={asked!r}",
            "unset it, or name the GPUs to use",
            "unset CUDA_VISIBLE_DEVICES",
        )
    wrong = [
        name
        for name in names
        if not re.match("(GPU|MIG)-", name) and not (re.fullmatch("[0-9]{1,4}", name) and int(name) < count)
    ]
    if wrong or len(set(names)) != len(names):
        return fail(
            "H144",
            "CUDA_VISIBLE_DEVICES is malformed",
            f"{asked} with {count} GPUs" + (f"; wrong: {', '.join(wrong)}" if wrong else "; one is named twice"),
            "CUDA stops reading at the first wrong name, and a name that stands twice hides all: write each number once",
            "unset CUDA_VISIBLE_DEVICES",
        )
    return ok("H144", f"{len(names)} of {count} GPUs are visible", f"CUDA_VISIBLE_DEVICES={asked}")


def _gpu_memory(rows: list[list[str]]) -> Finding:
    used = []
    for row in rows:
        in_use, total = (_number(cell) for cell in row[3:5])
        if in_use is not None and total is not None and in_use > 0.1 * total:
            used.append(f"GPU {row[0]}: {in_use} of {total} MiB")
    if not used:
        return ok("H142", "GPUs are free")
    apps = run(["nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"], 20).text
    pids = [line.split(",")[0].strip() for line in apps.splitlines() if _number(line.split(",")[0].strip()) is not None]
    if not pids:
        return warn(
            "H142", "GPU memory is in use and no process shown", ", ".join(used), "another container may hold it"
        )
    return warn(
        "H142",
        "GPU memory is in use",
        f"{', '.join(used)}; pids {', '.join(pids[:6])}",
        "end the processes if they are left over",
        f"kill {' '.join(pids)}",
    )


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no output")
