"""torch_npu's names: how many there are, what the missing ones say, and that those of other modules work."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
import torch_npu
from torch_npu._missing import NotSimulatedError, real_names
from torch_npu._runtime import chip


def is_present(name: str) -> bool:
    """Whether the stand-in has the name itself, and not a placeholder."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            owner = importlib.import_module(".".join(parts[:length]))
        except (ImportError, AttributeError):
            continue
        for part in parts[length:-1]:
            owner = getattr(owner, part)
        if parts[-1] in vars(owner):
            return True
        if any(parts[-1] in vars(base) for base in getattr(owner, "__mro__", ())):
            return True
        operators = getattr(torch_npu, "_operators", None)
        if owner is torch_npu and operators is not None and operators.find(parts[-1]) is not None:
            return True
        try:
            importlib.import_module(name)
        except (ImportError, NotSimulatedError):
            return False
        return True
    return False


def test_the_share_of_names_present_is_reported_and_does_not_fall(record_property) -> None:
    names = real_names()
    by_kind: dict[str, list[bool]] = {}
    for name, (kind, _) in names.items():
        by_kind.setdefault(kind, []).append(is_present(name))
    shares = {kind: (sum(found), len(found)) for kind, found in by_kind.items()}
    for kind, (found, known) in sorted(shares.items()):
        record_property(f"names of kind {kind}", f"{found} of {known}")
        print(f"names of kind {kind}: {found} of {known}")
    others = [pair for kind, pair in shares.items() if kind != "op"]
    assert sum(found for found, _ in others) / sum(known for _, known in others) >= 0.6


def stated_parameters(signature: str) -> list[str]:
    """Parameters of a signature's text, each as `name` or `name=`, without the marks `*` and `/`."""
    depth, parts = 0, [""]
    for character in signature[1 : signature.rindex(")")]:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    spelled = []
    for part in filter(None, map(str.strip, parts)):
        annotated, equals, _ = part.partition("=")
        name = annotated.split(":")[0].strip()
        if name not in ("*", "/"):
            spelled.append(name + equals)
    return spelled


def found_parameters(function: Callable[..., object]) -> list[str]:
    """The same of a function or class that is here."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [
        stars.get(parameter.kind, "") + parameter.name + ("=" if parameter.default is not parameter.empty else "")
        for parameter in inspect.signature(function).parameters.values()
    ]


def signatures_here() -> Iterator[tuple[str, list[str], list[str]]]:
    """Each function and class that is present and has a signature in the table: what is stated, what is found."""
    for name, (kind, signature) in real_names().items():
        if kind not in ("function", "class", "method") or not signature.startswith("(") or not is_present(name):
            continue
        owner, _, leaf = name.rpartition(".")
        try:
            function = getattr(importlib.import_module(owner), leaf)
        except ImportError:
            holder, _, middle = owner.rpartition(".")
            function = getattr(getattr(importlib.import_module(holder), middle), leaf)
        with contextlib.suppress(ValueError):
            yield name, stated_parameters(signature), found_parameters(function)


def test_signatures_are_those_of_the_real_package() -> None:
    # A decorator hides some of the real ones.
    compared = [row for row in signatures_here() if row[1] != ["*args", "**kwargs"]]
    other = {name: (stated, found) for name, stated, found in compared if stated != found}
    print(f"signatures: {len(compared) - len(other)} of {len(compared)} are the real ones")
    assert len(compared) > 100
    assert not other, other


def test_no_name_of_the_real_package_is_an_attribute_error() -> None:
    for name in real_names():
        owner_name, _, leaf = name.rpartition(".")
        try:
            owner = importlib.import_module(owner_name)
        except ImportError:
            continue
        try:
            getattr(owner, leaf)
        except NotSimulatedError as error:
            assert "not simulated: " in str(error)  # noqa: PT017  # either way of ending is right
    with pytest.raises(AttributeError):
        _ = torch_npu.no_such_name
    with pytest.raises(AttributeError):
        _ = torch.npu.no_such_name


def test_missing_functions_classes_and_modules_say_so_when_used() -> None:
    with pytest.raises(NotSimulatedError, match="not simulated: torch_npu.npu_fusion_attention"):
        torch_npu.npu_fusion_attention(1)
    with pytest.raises(NotSimulatedError, match="not simulated: torch_npu.npu.NPUGraph"):
        torch.npu.NPUGraph()
    with pytest.raises(ImportError, match=r"not simulated: torch_npu\.dynamo"):
        importlib.import_module("torch_npu.dynamo")


def test_it_says_that_it_is_simulated() -> None:
    assert torch_npu.is_simulated
    assert torch.npu.is_simulated
    assert torch_npu.version.git_version == "simulated"
    assert "simulated" in torch.npu.memory_summary()


def test_chip_and_devices_are_told_as_asked_for() -> None:
    assert torch.npu.device_count() == torch_npu.simulator_settings.devices
    assert torch.npu.get_device_name(0) == chip.device_name
    assert torch.npu.get_device_properties(0).total_memory == chip.memory_bytes
    assert torch.accelerator.current_accelerator().type == "npu"
    assert torch.device("npu:1").type == "npu"
    assert torch.ones(1, device="npu:1").is_npu


def test_streams_and_events_have_their_order_and_no_npu_times() -> None:
    stream = torch.npu.Stream()
    with torch.npu.stream(stream):
        assert torch.npu.current_stream() == stream
        event = stream.record_event()
    assert torch.npu.current_stream() != stream
    stream.wait_stream(torch.npu.current_stream())
    event.synchronize()
    assert event.query()
    first, second = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
    first.record()
    second.record()
    assert first.elapsed_time(second) >= 0
    with pytest.raises(RuntimeError, match="enable_timing"):
        torch.npu.Event().elapsed_time(second)


def test_devices_nest_and_come_back() -> None:
    with torch.npu.device(2):
        assert torch.npu.current_device() == 2
        assert torch.ones(1, device="npu").device.index == 2
    assert torch.npu.current_device() == 0


def test_own_operators_equal_their_torch_form() -> None:
    x = torch.randn(2, 8, device="npu", requires_grad=True)
    first, second = x.chunk(2, -1)
    assert torch.equal(torch_npu.npu_swiglu(x), torch.nn.functional.silu(first) * second)
    assert torch.equal(torch.ops.npu.npu_swiglu(x), torch_npu.npu_swiglu(x))
    torch_npu.npu_swiglu(x).sum().backward()
    assert x.grad is not None
    assert torch_npu.npu_format_cast(x, 29) is x
    assert torch_npu.get_npu_format(x) == torch_npu.Format.ND
    normed, _ = torch_npu.npu_rms_norm(x, torch.ones(8, device="npu"))
    torch.testing.assert_close(normed, torch.nn.functional.rms_norm(x, (8,), eps=1e-6))


def test_the_profiler_writes_a_trace_that_says_simulated(tmp_path: Path) -> None:
    from torch_npu import profiler

    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.NPU],
        schedule=profiler.schedule(wait=0, active=1, warmup=0, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(tmp_path)),
        experimental_config=profiler._ExperimentalConfig(profiler_level=profiler.ProfilerLevel.Level1),
    ) as recording:
        torch.ones(2, device="npu").sum()
        recording.step()
    assert [path for path in tmp_path.iterdir() if "simulated" in path.name]


def test_joined_tensors_are_views_of_one() -> None:
    tensors = [torch.ones(2, device="npu"), torch.zeros(3, device="npu")]
    combined = torch_npu.utils.npu_combine_tensors(tensors)
    assert torch_npu.utils.is_combined_tensor_valid(combined, tensors)
    combined.fill_(5)
    assert tensors[1].tolist() == [5, 5, 5]


def test_saved_tensors_keep_their_device_and_load_on_the_cpu() -> None:
    buffer = io.BytesIO()
    torch.save({"weight": torch.ones(2, device="npu:1")}, buffer)
    buffer.seek(0)
    assert torch.load(buffer, weights_only=True)["weight"].device == torch.device("npu:1")
    buffer.seek(0)
    assert torch.load(buffer, map_location="cpu", weights_only=True)["weight"].device.type == "cpu"


def test_a_file_saved_in_the_background_is_whole_and_on_the_cpu(tmp_path: Path) -> None:
    torch_npu.utils.save_async({"weight": torch.ones(2, device="npu")}, tmp_path / "saved.pt")
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    assert torch.load(tmp_path / "saved.pt", weights_only=True)["weight"].tolist() == [1, 1]


def test_a_loader_with_workers_and_pinned_memory_feeds_an_npu() -> None:
    torch.ones(1, device="npu")
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    loader = torch.utils.data.DataLoader(data, 3, num_workers=1, pin_memory=True)
    seen = [batch.npu(non_blocking=True) for (batch,) in loader]
    assert torch.cat(seen).tolist() == [0, 1, 2, 3, 4, 5]
