"""all-reduce, all-to-all, all-gather and the exact sum by size: time, algorithm bandwidth, bus bandwidth."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from unisono.errors import UserError


def measure_collectives(devices: int, platform: str, repeats: int = 10) -> list[dict[str, Any]]:
    """Rows of {name, bytes, ms, algorithm_gb_s, bus_gb_s}, medians over the repeats.

    Bus bandwidth is what a link carries: algorithm bandwidth x 2 (N-1)/N for an all-reduce and the exact sum, (N-1)/N for
    the others (NCCL's tests define it so).

    Raises:
        UserError: B101 the ranks did not end.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
        done = subprocess.run(
            [*command, "-m", "unisono.bench.collective_ranks", platform, str(repeats), str(answer)],
            capture_output=True,
            text=True,
        )
        if not answer.is_file():
            errors = [line for line in done.stderr.splitlines() if "rror" in line]
            raise UserError(
                "B101",
                f"the collectives on {devices} {platform} devices did not end",
                (errors or ["no output"])[-1][:300],
                "try `unisono doctor --devices N` first",
            )
        rows: list[dict[str, Any]] = json.loads(answer.read_text(encoding="utf-8"))
    return rows
