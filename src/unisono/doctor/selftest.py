"""The self-tests: real collectives on real devices, results checked; twenty training steps twice. Run in processes of their own."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from unisono.doctor.commands import run
from unisono.doctor.finding import Finding, fail, ok, unknown

_LIMIT_S = 240


def check_collectives(devices: int, platform: str) -> Iterator[Finding]:
    """H180-H189: one finding a collective, its result checked for sizes from 4 B to 64 MB, bandwidth shown."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
        output = run([*command, "-m", "unisono.doctor.collective_ranks", platform, str(answer)], _LIMIT_S)
        if not answer.is_file():
            text = _telling(output.text)
            yield fail(
                "H180",
                f"the collective self-test on {devices} {platform} devices did not end",
                text,
                "give the whole output to `unisono explain`",
                f"torchrun --standalone --nproc-per-node={devices} -m unisono.doctor.collective_ranks {platform} /tmp/answer.json",
            )
            return
        rows = json.loads(answer.read_text(encoding="utf-8"))
    for number, row in enumerate(rows):
        code = f"H18{min(number, 9)}"
        if row["wrong"]:
            yield fail(
                code,
                f"{row['name']} gives wrong results",
                f"sizes {row['wrong']} bytes",
                "a link or card corrupts data: test pairs of cards, read `unisono doctor --only network`",
            )
        else:
            yield ok(
                code,
                f"{row['name']} is right",
                f"{row['largest_mb']:g} MB in {row['ms']:.1f} ms, {row['gb_s']:.2f} GB/s",
            )


def check_training() -> Iterator[Finding]:
    """H190: twenty steps on one and on two CPU processes end in the same digest, twice."""
    digests = []
    for devices in (1, 2, 1):
        with tempfile.TemporaryDirectory() as folder:
            command = [
                sys.executable,
                "-m",
                "unisono",
                "train",
                "mlp_fashion_mnist",
                "--platform",
                "cpu",
                "--devices",
                str(devices),
                "--steps",
                "20",
            ]
            output = run([*command, "--run-dir", f"{folder}/run", "--max-restarts", "0"], _LIMIT_S)
            summary = Path(folder) / "run" / "summary.json"
            if not summary.is_file():
                yield fail(
                    "H190",
                    f"twenty training steps on {devices} processes did not end",
                    _telling(output.text),
                    "give the whole output to `unisono explain`",
                    " ".join(["unisono", *command[3:]]),
                )
                return
            digests.append(json.loads(summary.read_text(encoding="utf-8"))["digest"])
    if len(set(digests)) > 1:
        yield fail(
            "H190",
            "twenty training steps do not repeat",
            ", ".join(digest[:12] for digest in digests),
            "this machine computes otherwise from one time to the next: test its memory",
            "unisono verify mlp_fashion_mnist",
        )
        return
    yield ok("H190", "twenty training steps give one digest on 1 and 2 processes", digests[0][:16])
    yield _known_digest(digests[0])


def _known_digest(digest: str) -> Finding:
    """Digests depend on the processor's instructions and torch; equality with another machine is told, its lack is no fault."""
    table = json.loads((Path(__file__).parent / "knowledge" / "digests.json").read_text(encoding="utf-8"))
    if digest in table:
        return ok("H191", "the digest is one seen on another machine", table[digest])
    return unknown(
        "H191", "no other machine is known to give this digest", "other versions, instructions or data give others", ""
    )


def _telling(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "rror" in line]
    return (lines[-1] if lines else text.strip()[-200:] or "no output")[:300]
