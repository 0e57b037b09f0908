"""The simulator's tests inside one process on several versions of torch, each in a temporary environment.

    python tests/sim/matrix.py 2.11.0 2.12.0 2.13.0 2.14.1

An environment takes about 1 GB while its version is tested. `make sim-matrix` runs it over the versions that are supported.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VISION = {"2.11": "0.26", "2.12": "0.27", "2.13": "0.28", "2.14": "0.29"}
NEEDED = ("numpy", "timm", "filelock", "ninja", "pytest", "pytest-timeout", "setuptools", "wheel", "hatchling")


def test_on(version: str) -> str:
    """What came of the tests on one version: passed, failed, or not installable here."""
    with tempfile.TemporaryDirectory(prefix=f"unisono-torch-{version}-") as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        minor = ".".join(version.split(".")[:2])
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        packages = [f"torch=={version}", f"torchvision=={VISION[minor]}.*", *NEEDED]
        if subprocess.run([*install, *packages], check=False).returncode:
            return "not installable here"
        subprocess.run([*install, "--no-deps", "-e", str(ROOT)], check=True)
        variables = subprocess.run(
            [python, "-c", "from unisono.simulator import environment as e; [print(f'{k}={v}') for k, v in e(4, memory='1GiB').items()]"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        own = dict(line.split("=", 1) for line in variables.splitlines())
        done = subprocess.run(
            [python, "-m", "pytest", str(ROOT / "tests" / "sim" / "inside"), "-o", "addopts=--import-mode=importlib -q"],
            env={**os.environ, **own, "UNISONO_CACHE": folder, "OMP_NUM_THREADS": "1"},
            check=False,
        )
        return "passed" if done.returncode == 0 else "failed"


def main() -> int:
    """Test every version named; 1 when one failed."""
    results = {version: test_on(version) for version in sys.argv[1:] or VISION}
    for version, result in results.items():
        print(f"torch {version}: {result}")
    return int("failed" in results.values())


if __name__ == "__main__":
    sys.exit(main())
