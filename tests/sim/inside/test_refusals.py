"""What a real NPU refuses, a simulated one refuses, in the same form."""

from __future__ import annotations

import io
import os
import warnings

import pytest
import torch
import torch_npu
from torch_npu._runtime import chip

MIB = 2**20


@pytest.mark.parametrize(
    "use", [lambda: torch.npu.set_device(64), lambda: torch.empty(1, device="npu:63"), lambda: torch.zeros(1).to("npu:63")]
)
def test_a_device_that_does_not_exist_is_refused_with_the_drivers_codes(use) -> None:
    with pytest.raises(RuntimeError, match=r"error code is 107001(.|\n)*ERR00100(.|\n)*EE1001(.|\n)*simulated"):
        use()


@pytest.mark.parametrize("other", ["cpu", "npu:1"])
def test_tensors_of_different_devices_do_not_mix(other: str) -> None:
    with pytest.raises(RuntimeError, match=rf"same device, but found at least two devices, npu:0 and {other}"):
        torch.ones(2, device="npu:0") + torch.ones(2, device=other)


def test_a_cpu_scalar_mixes_as_torch_lets_it() -> None:
    assert torch.equal((torch.ones(2, device="npu") * torch.tensor(3.0)).cpu(), torch.full((2,), 3.0))


def test_float64_becomes_float32_with_the_documented_warning() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            moved = torch.ones(2, dtype=torch.float64).npu()
        finally:
            torch.set_warn_always(False)
    assert moved.dtype is torch.float32
    assert any("do not support double dtype" in str(warning.message) for warning in caught)
    assert torch.ones(2, device="npu").double().dtype is torch.float32
    assert torch.tensor([1.0], dtype=torch.float64, device="npu").dtype is torch.float32
    assert torch.ones(2, dtype=torch.float32).double().dtype is torch.float64


DOUBLE = {"dtype": torch.float64, "device": "npu:1"}
FACTORIES = {
    "empty": lambda: torch.empty(3, **DOUBLE),
    "empty_strided": lambda: torch.empty_strided((2, 2), (1, 2), **DOUBLE),
    "zeros": lambda: torch.zeros(3, **DOUBLE),
    "ones": lambda: torch.ones(3, **DOUBLE),
    "full": lambda: torch.full((3,), 0.1, **DOUBLE),
    "rand": lambda: torch.rand(3, **DOUBLE),
    "randn": lambda: torch.randn(3, **DOUBLE),
    "arange": lambda: torch.arange(0, 1, 0.1, **DOUBLE),
    "linspace": lambda: torch.linspace(0, 1, 7, **DOUBLE),
    "eye": lambda: torch.eye(3, **DOUBLE),
    "eye with columns": lambda: torch.eye(3, 2, **DOUBLE),
    "arange of whole numbers": lambda: torch.arange(4, **DOUBLE),
    "tensor": lambda: torch.tensor([0.1, 0.2], **DOUBLE),
    "zero-dimensional zeros": lambda: torch.zeros((), **DOUBLE),
    "as_tensor": lambda: torch.as_tensor([0.1], **DOUBLE),
    "zeros_like": lambda: torch.zeros_like(torch.ones(2, device="npu:1"), dtype=torch.float64),
    "rand_like of a float64 on the CPU": lambda: torch.rand_like(torch.ones(2, dtype=torch.float64), device="npu:1"),
    "new_full": lambda: torch.ones(2, device="npu:1").new_full((2,), 1, dtype=torch.float64),
    "sum": lambda: torch.ones(3, device="npu:1").sum(dtype=torch.float64),
    "bincount with weights": lambda: torch.bincount(torch.arange(2).npu(1), torch.ones(2).int().npu(1)),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_what_would_be_made_in_float64_is_made_in_float32_with_the_warning(name: str) -> None:
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="do not support double dtype"):
            made = FACTORIES[name]()
    finally:
        torch.set_warn_always(False)
    assert (made.dtype, made.device) == (torch.float32, torch.device("npu:1"))
    assert torch.equal((made + made).cpu(), made.cpu() * 2)


def test_a_default_of_float64_makes_float32_on_an_npu() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.rand(2, device="npu").dtype is torch.float32
        assert torch.arange(0, 1, 0.5, device="npu").dtype is torch.float32
        assert torch.arange(3, device="npu").dtype is torch.int64
        assert torch.nn.Linear(2, 2, device="npu").weight.dtype is torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_python_numbers_keep_their_digits_and_a_gradient_comes_back_in_float32() -> None:
    values = torch.tensor([1.0, -1.0], dtype=torch.float16)
    expected = torch.where(values > 0, values, 0.1)
    assert torch.equal(torch.where(values.npu() > 0, values.npu(), 0.1).cpu(), expected)
    x = torch.ones(3, device="npu", requires_grad=True)
    x.sum(dtype=torch.float64).backward()
    assert x.grad.tolist() == [1, 1, 1]


def test_a_saved_float64_keeps_its_value_when_it_is_loaded_onto_an_npu() -> None:
    buffer = io.BytesIO()
    torch.save(torch.tensor([0.1, 0.2], dtype=torch.float64), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer, map_location="npu")
    assert torch.equal(loaded.cpu(), torch.tensor([0.1, 0.2], dtype=loaded.dtype))


def test_cuda_stays_absent() -> None:
    assert not torch.cuda.is_available()
    with pytest.raises((RuntimeError, AssertionError), match=r"(?i)nvidia|cuda"):
        torch.zeros(1).cuda()


def test_pinned_memory_is_host_memory() -> None:
    pinned = torch.zeros(3).pin_memory()
    assert pinned.is_pinned()
    assert not torch.zeros(3).is_pinned()
    with pytest.raises(RuntimeError, match="pin"):
        torch.zeros(3, device="npu").pin_memory()
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(3, pin_memory=True, device="npu")
    assert torch.equal(pinned.npu(non_blocking=True).cpu(), torch.zeros(3))


def test_a_fork_after_initialisation_is_refused_in_the_child() -> None:
    torch.zeros(1, device="npu")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            torch.zeros(1, device="npu")
            os.write(write, b"it worked")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"Cannot re-initialize NPU in forked subprocess" in os.read(read, 4096)
    assert torch.npu.is_initialized()


def test_memory_beyond_the_limit_is_refused_and_nothing_is_counted() -> None:
    before = torch.npu.memory_allocated()
    with pytest.raises(torch.OutOfMemoryError, match=r"NPU out of memory\. Tried to allocate .* total capacity"):
        torch.empty(chip.memory_bytes + 1, dtype=torch.uint8, device="npu")
    assert torch.npu.memory_allocated() == before
    assert torch.npu.memory_stats()["num_ooms"] >= 1


def test_a_fraction_of_the_memory_is_a_limit() -> None:
    torch.npu.set_per_process_memory_fraction(1 / 16, 1)
    try:
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(chip.memory_bytes // 8, dtype=torch.uint8, device="npu:1")
    finally:
        torch.npu.set_per_process_memory_fraction(1.0, 1)
    with pytest.raises(ValueError, match="fraction"):
        torch.npu.set_per_process_memory_fraction(1.5)


def test_blocks_are_rounded_as_torch_npu_rounds_them() -> None:
    before = torch.npu.memory_allocated(2)
    small = torch.empty(1, device="npu:2")
    assert torch.npu.memory_allocated(2) - before == 512
    large = torch.empty(MIB, dtype=torch.uint8, device="npu:2")
    assert torch.npu.memory_allocated(2) - before == 512 + MIB + 512  # 32 bytes more, up to a multiple of 512
    del small, large
    assert torch.npu.memory_allocated(2) == before
    assert torch.npu.max_memory_allocated(2) >= before + MIB
    torch.npu.reset_peak_memory_stats(2)
    assert torch.npu.max_memory_allocated(2) == before
    torch.npu.empty_cache()
    assert torch.npu.memory_reserved(2) % (2 * MIB) == 0


def test_a_fused_optimizer_refuses_parameters_that_were_moved() -> None:
    model = torch.nn.Linear(2, 2).npu()
    optimizer = torch_npu.optim.NpuFusedSGD(model.parameters(), lr=0.1)
    model.cpu()
    with pytest.raises(RuntimeError, match="fused optimizers need parameters on an NPU"):
        optimizer.step()


@pytest.mark.skipif(chip.bfloat16, reason="this chip has bfloat16")
def test_a_910a_has_no_bfloat16() -> None:
    assert not torch.npu.is_bf16_supported()
    with pytest.raises(RuntimeError, match="DT_BFLOAT16"):
        torch.ones(2, dtype=torch.bfloat16, device="npu") + 1


@pytest.mark.skipif(chip.saturates, reason="this chip saturates")
def test_fp16_overflow_is_inf_and_the_scaler_skips_the_step() -> None:
    assert torch.isinf(torch.full((2,), 60000.0, dtype=torch.float16, device="npu") * 2).all()
    assert step_with_overflow() == (True, 2.0**15)


@pytest.mark.skipif(not chip.saturates, reason="this chip has inf and NaN")
def test_fp16_overflow_saturates_and_the_flag_makes_the_scaler_skip_the_step() -> None:
    torch.npu.clear_npu_overflow_flag()
    doubled = torch.full((2,), -60000.0, dtype=torch.float16, device="npu") * 2
    assert torch.equal(doubled.cpu(), torch.full((2,), -65504.0, dtype=torch.float16))
    assert torch.npu.get_npu_overflow_flag()
    zero = torch.zeros(1, dtype=torch.float16, device="npu")
    assert (zero / zero).item() == 0
    assert step_with_overflow() == (True, 2.0**15)


def step_with_overflow() -> tuple[bool, float]:
    """Whether a step with an overflow in backward was skipped, and the loss scale after it."""
    layer = torch.nn.Linear(2, 2).npu()
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    scaler = torch_npu.npu.amp.GradScaler(init_scale=2.0**16)
    with torch_npu.npu.amp.autocast():
        loss = layer(torch.full((1, 2), 50000.0, device="npu")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    return torch.equal(layer.weight, before), scaler.get_scale()
