"""What `python -m torch_npu.utils.collect_env` prints: torch's report, headed as simulated."""

from __future__ import annotations

import sys

from torch.utils.collect_env import get_pretty_env_info


def main() -> None:
    """Write the report."""
    sys.stdout.write("torch_npu: SIMULATED, no NPU and no CANN\n" + get_pretty_env_info() + "\n")


if __name__ == "__main__":
    main()
