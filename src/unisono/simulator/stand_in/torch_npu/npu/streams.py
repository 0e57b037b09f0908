"""Streams and events. Streams are numbers: everything is done, in the order it was asked for, when a call returns."""

from __future__ import annotations

import time
from typing import Any

import torch

from torch_npu._missing import missing_names
from torch_npu._runtime import device_index


class Stream(torch.Stream):
    """A stream of an NPU."""

    def __new__(cls, device: Any = None, priority: int = 0, **kwargs: Any) -> Stream:
        if "stream_id" in kwargs:
            return super().__new__(cls, priority=priority, **kwargs)
        return super().__new__(cls, device=torch.device("npu", device_index(device)), priority=priority, **kwargs)

    def wait_event(self, event: Any) -> None:
        """Later work of this stream comes after the event."""
        event.wait(self)

    def wait_stream(self, stream: Any) -> None:
        """Later work of this stream comes after what the other has now."""
        self.wait_event(stream.record_event())

    def record_event(self, event: Any = None) -> Any:
        """Mark this moment of the stream."""
        event = Event() if event is None else event
        event.record(self)
        return event

    @property
    def npu_stream(self) -> int:
        """The handle, as a number."""
        return int(self.stream_id)

    def set_data_preprocess_stream(self, is_data_preprocess_stream: bool = False) -> None:
        """Accepted; there is no queue to prefer."""

    def __enter__(self) -> Stream:
        self._before = set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        torch.accelerator.set_stream(self._before)

    def __repr__(self) -> str:
        return f"<torch_npu.npu.Stream device={self.device} npu_stream={self.npu_stream:#x}>"


class SyncLaunchStream(Stream):
    """A stream whose operators are launched without the queue; here every stream is one."""


class Event(torch.Event):
    """A moment of a stream; with enable_timing, readings of the host's clock. Never an NPU's time."""

    def __new__(cls, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:
        return super().__new__(
            cls, device="npu", enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
        )

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._timed = enable_timing
        self._recorded_at: float | None = None

    def record(self, stream: Any = None) -> None:
        """Take this moment of the stream."""
        super().record(current_stream() if stream is None else stream)
        self._recorded_at = time.perf_counter()

    def wait(self, stream: Any = None) -> None:
        """Later work of the stream comes after this event."""
        super().wait(current_stream() if stream is None else stream)

    def elapsed_time(self, end_event: Event) -> float:  # type: ignore[override]  # torch's own refuses subclasses
        """Milliseconds of host time between two recorded events with timing."""
        if not (self._timed and end_event._timed):
            raise RuntimeError("both events need enable_timing=True")
        if self._recorded_at is None or end_event._recorded_at is None:
            raise RuntimeError("both events must be recorded first")
        return (end_event._recorded_at - self._recorded_at) * 1e3

    def __repr__(self) -> str:
        return "<torch_npu.npu.Event>"


class StreamContext:
    """Make a stream, and its device, current inside a `with`; None changes nothing."""

    def __init__(self, stream_ctx: Any) -> None:
        self.stream = stream_ctx
        self._before: Any = None
        self._device = -1

    def __enter__(self) -> None:
        if self.stream is not None:
            self._device = torch.accelerator.current_device_index()
            self._before = set_stream(self.stream)

    def __exit__(self, *_: object) -> None:
        if self.stream is not None:
            torch.accelerator.set_stream(self._before)
            torch.accelerator.set_device_index(self._device)


def stream(stream: Any) -> StreamContext:
    """A context in which the stream is current."""
    return StreamContext(stream)


def set_stream(stream: Any) -> Any:
    """Make a stream current; returns the one before."""
    before = current_stream(stream.device)
    torch.accelerator.set_stream(stream)
    return before


def _as_npu_stream(plain: torch.Stream) -> Stream:
    return Stream(stream_id=plain.stream_id, device_index=plain.device_index, device_type=plain.device_type)


def current_stream(device: Any = None) -> Stream:
    """The current stream of a device."""
    return _as_npu_stream(torch.accelerator.current_stream(device_index(device)))


def default_stream(device: Any = None) -> Stream:
    """The default stream of a device."""
    current = torch.accelerator.current_stream(device_index(device))
    return Stream(stream_id=0, device_index=current.device_index, device_type=current.device_type)


def get_stream_limit(stream: Any) -> dict[str, int]:
    """Cores that the stream may use: all."""
    from torch_npu._runtime import chip

    return _limits.get(stream.stream_id, {"cube_core_num": chip.cube_cores, "vector_core_num": chip.vector_cores})


def set_stream_limit(stream: Any, cube_num: int = -1, vector_num: int = -1) -> None:
    """Kept for get_stream_limit; no core is counted here."""
    limit = dict(get_stream_limit(stream))
    if cube_num > 0:
        limit["cube_core_num"] = cube_num
    if vector_num > 0:
        limit["vector_core_num"] = vector_num
    _limits[stream.stream_id] = limit


def reset_stream_limit(stream: Any) -> None:
    """Forget what set_stream_limit has set."""
    _limits.pop(stream.stream_id, None)


_limits: dict[int, dict[str, int]] = {}
__getattr__ = missing_names(__name__)
