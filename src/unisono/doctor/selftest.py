"""The self-tests: real collectives on real devices, results checked; twenty training steps twice. Run in processes of their own."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unisono.doctor.commands import run
from unisono.doctor.finding import Finding, fail, ok, unknown, warn

_LIMIT_S = 240
# More, and the logs of several machines cannot be put in order.
_CLOCKS_APART_S = 1.0


@dataclass(frozen=True, slots=True)
class Machines:
    """Several machines that run the self-test together; the same command is given on each, with its own number."""

    count: int = 1
    node_rank: int = 0
    endpoint: str = ""
    """HOST:PORT of machine 0."""

    def arguments(self) -> list[str]:
        """For torchrun."""
        if self.count == 1:
            return ["--standalone"]
        host, _, port = self.endpoint.rpartition(":")
        return [
            f"--nnodes={self.count}",
            f"--node-rank={self.node_rank}",
            f"--master-addr={host}",
            f"--master-port={port}",
        ]


def check_collectives(devices: int, platform: str, machines: Machines = Machines()) -> Iterator[Finding]:
    """H180-H188, H192-H194: one finding a collective, its result checked for sizes from 4 B to 64 MB, bandwidth shown."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        launcher = ["-m", "torch.distributed.run", *machines.arguments(), f"--nproc-per-node={devices}"]
        ranks = ["-m", "unisono.doctor.collective_ranks", platform]
        if platform != "cpu":  # a CPU takes any number of processes
            run([sys.executable, *ranks, str(answer), str(devices)], _LIMIT_S)
        errors = sorted(Path(folder).glob("*.error"))
        if errors:
            yield _did_not_end(devices, platform, "", errors, [])
            return
        output = run([sys.executable, *launcher, *ranks, str(answer)], _LIMIT_S)
        if not answer.is_file():
            yield _did_not_end(
                devices, platform, output.text, sorted(Path(folder).glob("*.error")), [*launcher, *ranks]
            )
            return
        told = json.loads(answer.read_text(encoding="utf-8"))
    for number, row in enumerate(told["rows"], start=181):
        finding = _collective(f"H{number}", row)
        # A simulated figure never goes without the word.
        yield replace(finding, title=f"{finding.title} (simulated)") if told["simulated"] else finding
    if machines.count > 1:
        yield from _together(told["nodes"])


def _did_not_end(devices: int, platform: str, text: str, errors: list[Path], command: list[str]) -> Finding:
    title = f"the collective self-test on {devices} {platform} devices did not end"
    if errors:
        error = json.loads(errors[0].read_text(encoding="utf-8"))
        return fail("H180", title, f"{error['what']}: {error['why']}", error["fix"])
    again = " ".join(["python", *command, "/tmp/answer.json"])
    return fail(
        "H180", title, _telling(text), "give the whole output to `unisono explain`", f"{again} 2>&1 | unisono explain"
    )


def _collective(code: str, row: dict[str, Any]) -> Finding:
    if row["wrong"]:
        return fail(
            code,
            f"{row['name']} gives wrong results",
            f"sizes in bytes: {', '.join(map(str, row['wrong']))}",
            "a link or card corrupts data: try pairs of cards, and read `unisono doctor --only network,devices`",
        )
    if row["sizeless"]:
        return ok(code, f"{row['name']}: right")
    bandwidth = row["largest_mb"] * 2**20 / 1e6 / row["largest_ms"]
    return ok(
        code,
        f"{row['name']}: right from 4 B to {row['largest_mb']:g} MB",
        f"{row['smallest_ms']:.2f} ms for 4 B, {bandwidth:.2f} GB/s at {row['largest_mb']:g} MB",
    )


def _together(nodes: list[dict[str, Any]]) -> Iterator[Finding]:
    """What must be alike on all machines."""
    apart = max(node["clock_s"] for node in nodes) - min(node["clock_s"] for node in nodes)
    clocks = ", ".join(f"machine {node['node']}: {node['clock_s']:+.3f} s" for node in nodes)
    if apart > _CLOCKS_APART_S:
        yield warn(
            "H192", f"clocks are {apart:.1f} s apart", clocks, "switch NTP on everywhere", "timedatectl set-ntp true"
        )
    else:
        yield ok("H192", f"clocks of {len(nodes)} machines agree within {apart:.3f} s")
    # Rank 0's machine speaks to itself and so names the loopback; the others must agree.
    cards = {f"machine {node['node']}": node["card"] for node in nodes if node["card"] != "lo"}
    if len(set(cards.values())) > 1:
        yield warn(
            "H193",
            "machines use different network cards",
            ", ".join(f"{name}: {card}" for name, card in cards.items()),
            "right only where these lead to one network; else set HCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME on each",
        )
    else:
        yield ok("H193", "machines use the same network card", next(iter(cards.values()), "lo"))
    builds = {node["torch"] for node in nodes}
    if len(builds) > 1:
        yield fail(
            "H194", "machines have different builds of torch", ", ".join(sorted(builds)), "install one build on all"
        )
    else:
        yield ok("H194", f"all machines have torch {next(iter(builds))}")


def check_training() -> Iterator[Finding]:
    """H190, H191: twenty steps on one and on two CPU processes end in the same digest, twice, and in the one on record.

    On the sample that ships with the package, whatever else lies on this machine.
    """
    sample = Path(__file__).resolve().parents[1] / "data" / "sample"
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
                "--data-path",
                str(sample),
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
    yield _known_digest(digests[0], _kernels())


def _kernels() -> str:
    """What this machine's digests depend on, as digests.json names it; empty when torch does not tell."""
    program = (
        "import platform, torch; "
        "print(torch.__version__.split('+')[0], torch.backends.cpu.get_cpu_capability(), platform.machine(), sep=', ')"
    )
    output = run([sys.executable, "-c", program], 120)
    return output.text.strip().splitlines()[-1] if output.code == 0 and output.text.strip() else ""


def _known_digest(digest: str, kernels: str) -> Finding:
    """Against the digest on record for the same torch and instructions.

    Another processor of the same instructions may still choose other kernels (oneDNN and MKL look at its caches), so
    that another digest is a warning; that this machine repeats itself was found before.
    """
    table: dict[str, str] = json.loads(
        (Path(__file__).parent / "knowledge" / "digests.json").read_text(encoding="utf-8")
    )
    if kernels not in table:
        return unknown(
            "H191",
            "no digest is on record for this torch and processor",
            f"{digest[:16]} with torch {kernels or 'of unknown version'}; on record: {'; '.join(table)}",
        )
    if digest != table[kernels]:
        return warn(
            "H191",
            "the digest is not the one on record",
            f"{digest[:16]}, on record {table[kernels][:16]} for torch {kernels}",
            "a changed recipe gives another, and so may kernels chosen for another processor; compare with a second machine",
            "unisono verify mlp_fashion_mnist",
        )
    return ok("H191", "the digest is the one on record", f"torch {kernels}")


def _telling(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if "rror" in line]
    return (lines[-1] if lines else text.strip()[-200:] or "no output")[:300]
