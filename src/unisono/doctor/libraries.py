"""Libraries: does torch import, do CANN's libraries load. Each is tried in a process of its own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator

from unisono.doctor.commands import run
from unisono.doctor.finding import Finding, fail, ok, skip

_CANN = ("libascendcl.so", "libhccl.so", "libascend_hal.so")


def check_libraries() -> Iterator[Finding]:
    """H120-H122."""
    yield _torch()
    if importlib.util.find_spec("torch_npu") is None:
        yield skip("H121", "CANN's libraries", "no torch_npu here")
        return
    for library in _CANN:
        program = f"import ctypes; ctypes.CDLL({library!r})"
        output = run([sys.executable, "-c", program], 30)
        yield (
            ok("H121", f"{library} loads")
            if output.code == 0
            else fail(
                "H121",
                f"{library} does not load",
                _last_line(output.text),
                "source CANN's set_env.sh; libascend_hal.so comes with the driver",
            )
        )


def _torch() -> Finding:
    """A torch_npu without CANN breaks `import torch` itself, because torch loads installed backends by itself."""
    if importlib.util.find_spec("torch") is None:
        return fail(
            "H120", "torch is not installed here", sys.executable, "install it", "pip install torch torchvision"
        )
    program = "import torch; print(torch.__version__)"
    output = run([sys.executable, "-c", program], 120)
    if output.code == 0:
        return ok("H120", "torch imports", f"torch {_last_line(output.text)}")
    if (
        "torch_npu" in output.text
        and run(["env", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", sys.executable, "-c", program], 120).code == 0
    ):
        return fail(
            "H120",
            "torch_npu breaks the import of torch",
            _last_line(output.text),
            "source CANN's set_env.sh; where no NPU is used, switch the autoload off",
            "export TORCH_DEVICE_BACKEND_AUTOLOAD=0",
        )
    return fail("H120", "torch does not import", _last_line(output.text), "reinstall torch and torchvision as one pair")


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "no output")[:300]
