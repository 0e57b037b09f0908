"""Logs are read in every form in which they come: clocks, owners, blocks, tracebacks, summaries; nothing crashes."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.doctor import logs_scan
from unisono.doctor.logs import codes_of, read_events, read_log
from unisono.doctor.logs_clock import clock_text, skew, step_times, time_of
from unisono.doctor.logs_owner import attempt_of, process_and_rank_in, rank_and_node_of, split_prefix
from unisono.doctor.logs_trace import read_root_cause, read_trace

SECOND = 1735787045.0  # 2025-01-02 03:04:05 without a zone


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("EI0006: [PID: 1] 2025-01-02-03:04:05.678.901 x", SECOND + 0.678901),
        ("2025-01-02 03:04:05,678 ERROR x", SECOND + 0.678),
        ("2025-01-02T03:04:05Z x", SECOND),
        ("2025-01-02T11:04:05.5+08:00 x", SECOND + 0.5),
        ("time : 2025-01-02_03:04:05", SECOND),
        ("2025/01/02 03:04:05 x", SECOND),
        ("[rank1]:[E0102 03:04:05.678901234 ProcessGroupNCCL.cpp:616] x", SECOND + 0.678901234),
        ("W0102 03:04:05.678901 12 torch/distributed/run.py:1] x", SECOND + 0.678901),
        ("Arrival Time:[Thu Jan  2 03:04:05 2025]", SECOND),
        ("[ERROR] HCCL(7277,python):2025-01-02-03:04:05.678.901 [transport.cc:12]", SECOND + 0.678901),
    ],
)
def test_times_of_every_style_are_on_one_clock(text: str, seconds: float) -> None:
    assert time_of(text, year=2025) == pytest.approx(seconds, abs=1e-5)


@pytest.mark.parametrize(
    "text", ["", "no time", "2025-13-01 00:00:00", "2025-01-02 25:00:00", "v2025.01.02", "0000-00-00 00:00:00"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert time_of(text) is None


def test_a_time_is_shown_as_it_was_read() -> None:
    assert clock_text(time_of("2024-02-29 23:59:59,250") or 0) == "2024-02-29 23:59:59.250"


def test_a_clock_that_runs_ahead_is_measured_by_common_steps_and_noise_is_left_alone() -> None:
    lines = [f"2025-01-02 03:04:{n:02d},000 step {n}/99" for n in range(20)]
    reference = step_times(lines)
    assert len(reference) == 20
    ahead = {step: when + 3600.0 + step % 2 * 0.1 for step, when in reference.items()}
    assert skew(ahead, reference) == pytest.approx(3600.0, abs=0.2)
    assert skew({step: when + 0.5 for step, when in reference.items()}, reference) == 0.0
    assert skew({step: when * (1 + step) for step, when in reference.items()}, reference) == 0.0
    assert skew({1: 5000.0}, reference) == 0.0


@pytest.mark.parametrize(
    ("name", "rank", "node"),
    [
        ("rank_3.log", 3, None),
        ("logs/attempt_0/rank_12.log", 12, None),
        ("attempt_0/5/stdout.log", 5, None),
        ("train_7.log", 7, None),
        ("node_b/rank_8.log", 8, "b"),
        ("node0/worker-1.log.gz", 1, "0"),
        ("192.0.2.10/rank_4.log", 4, "192.0.2.10"),
        ("host-a1/ascend/log/debug/plog/plog-7277_20250102030405.log", None, "a1"),
        ("2025-01-02.log", None, None),
        ("train.log", None, None),
    ],
)
def test_a_files_name_and_folders_tell_its_rank_and_node(name: str, rank: int | None, node: str | None) -> None:
    assert rank_and_node_of(Path("/r") / name, Path("/r")) == (rank, node)


@pytest.mark.parametrize(
    ("line", "rank", "rest"),
    [
        ("[rank3]: RuntimeError: x", 3, "RuntimeError: x"),
        ("[rank3]:[E0102 03:04:05.1 a.cpp:1] x", 3, "[E0102 03:04:05.1 a.cpp:1] x"),
        ("[default0]:ERR02200 x", 0, "ERR02200 x"),
        ("[0]: x", 0, "x"),
        ("[1,3]<stderr>: x", 3, "x"),
        ("5: RuntimeError", 5, "RuntimeError"),
        ("rank2: x", 2, "x"),
        ("[12345] thread", None, "[12345] thread"),
        ("  File 'a.py'", None, "  File 'a.py'"),
    ],
)
def test_prefixes_of_launchers_name_the_rank(line: str, rank: int | None, rest: str) -> None:
    assert split_prefix(line)[::2] == (rank, rest)


def test_process_and_attempt_are_read_where_they_stand() -> None:
    assert process_and_rank_in("[ERROR] 2025-01-02-03:04:05 (PID:23232, Device:0, RankID:5) ERR02002") == (23232, 5)
    assert process_and_rank_in("(PID:1, Device:0, RankID:-1)") is None
    assert (attempt_of("logs/attempt_2/rank_0.log"), attempt_of("rank_0.log")) == (2, None)


@pytest.mark.parametrize(
    ("line", "codes"),
    [
        ("EI0006: [PID: 12] 2025-01-02-03:04:05.678.901 Getting socket times out.", ["EI0006"]),
        (
            "[PID: 7] 2025-01-02-03:04:05.678.901 Communication_Error_Bind_IP_Port(EI0019): Failed to listen.",
            ["EI0019"],
        ),
        ("RuntimeError: NPU function error: SetDevice, error code is 107001", ["107001"]),
        ("rtSetDevice failed, runtime result = 107001.", ["107001"]),
        ("retcode=507048, ret[507015]", ["507048", "507015"]),
        ("错误：EI0006 建链超时", ["EI0006"]),
        ("error T301: loss not finite for 20 steps in a row", ["T301"]),
        ("xEI0006 EI00061", []),
    ],
)
def test_codes_are_found_in_both_header_styles_and_as_numbers(line: str, codes: list[str]) -> None:
    assert codes_of(line) == codes


TRACE = """Traceback (most recent call last):
  File "train.py", line 12, in main
    loss.backward()
  File "torch/_tensor.py", line 5, in backward
    raise ValueError("x")
ValueError: my own mistake
and its second line
"""


def test_a_traceback_gives_exception_frame_and_phase() -> None:
    trace = read_trace(TRACE.encode(), 0)
    assert trace is not None
    assert (trace.exception, trace.frame, trace.phase) == (
        "ValueError: my own mistake",
        "torch/_tensor.py:5 in backward",
        "backward",
    )
    assert trace.message == ("ValueError: my own mistake", "and its second line")


def test_tracebacks_of_two_ranks_that_are_woven_together_are_told_apart() -> None:
    one = [f"[rank0]: {line}" for line in TRACE.splitlines()]
    two = [f"[rank1]: {line.replace('my own', 'another')}" for line in TRACE.splitlines()]
    woven = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    events = list(read_events(woven.splitlines(), "x"))
    assert [(event.rank, event.text) for event in events] == [
        (0, "ValueError: my own mistake"),
        (1, "ValueError: another mistake"),
    ]
    assert {event.frame for event in events} == {"torch/_tensor.py:5 in backward"}


def test_the_source_lines_that_a_traceback_quotes_are_no_events() -> None:
    text = TRACE.replace('raise ValueError("x")', 'raise ValueError("No space left on device")')
    for prefix in ("", "[rank1]: "):
        events = list(read_events([prefix + line for line in text.splitlines()], "x"))
        assert [event.code for event in events] == ["X141"]


def test_the_frame_shown_is_the_programs_own_where_there_is_one() -> None:
    text = TRACE.replace("torch/_tensor.py", "/venv/lib/python3.11/site-packages/torch/_tensor.py")
    [event] = read_events(text.splitlines(), "x")
    assert event.frame == "train.py:12 in main"


def test_a_traceback_that_is_cut_does_not_count_as_one() -> None:
    assert read_trace(b"Traceback (most recent call last):\n  File", 0) is None


SUMMARY = """Root Cause (first observed failure):
[0]:
  time      : 2025-01-02_03:04:05
  host      : node7
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 4242)
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 4242
"""


def test_the_agents_summary_names_rank_host_and_signal() -> None:
    root = read_root_cause(SUMMARY.encode(), 0)
    assert root is not None
    assert (root.rank, root.host, root.exit_code) == (3, "node7", -9)
    events = list(read_events(SUMMARY.splitlines(), "x"))
    assert (events[0].code, events[0].rank, events[0].node) == ("X131", 3, "node7")


def test_line_numbers_and_events_do_not_depend_on_where_blocks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"2025-01-02 03:04:05,000 INFO step {n}\n" for n in range(300)) + TRACE + "EI0006: [PID: 1] x\n" * 3
    whole = read_log(io.BytesIO(text.encode()), "x").events
    assert [event.where for event in whole] == ["x:306", "x:308", "x:309", "x:310"]
    for size in (64, 257, 1000):
        monkeypatch.setattr(logs_scan, "BLOCK_BYTES", size)
        assert [event.where for event in read_log(io.BytesIO(text.encode()), "x").events] == [e.where for e in whole]


def test_a_million_lines_of_one_kind_are_counted_and_not_kept() -> None:
    text = b"EI0006: [PID: 1] 2025-01-02-03:04:05.678.901 Getting socket times out.\n" * 5000
    reading = read_log(io.BytesIO(text), "x", rank=2)
    assert reading.counts["EI0006", 2] == 5000
    assert len(reading.events) < 50


def test_progress_bars_that_return_the_carriage_do_not_hide_the_error() -> None:
    text = "".join(f"\r{n}%|###  | {n}/100" for n in range(100)) + "\rRuntimeError: NPU out of memory. Tried\n"
    [event] = read_log(io.BytesIO(text.encode()), "x").events
    assert (event.code, event.where) == ("X101", "x:1")
    assert event.text.startswith("RuntimeError")


def test_a_line_of_megabytes_is_read_around_its_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs_scan, "BLOCK_BYTES", 1 << 12)
    text = b"x" * 50_000 + b" EI0006: [PID: 1] y " + b"z" * 50_000
    assert "EI0006" in {event.code for event in read_log(io.BytesIO(text), "x").events}


def test_packed_and_wide_logs_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "rank_0.log.gz"
    packed.write_bytes(gzip.compress(b"EI0006: [PID: 1] x\n"))
    with logs_scan.open_log(packed) as stream:
        assert [event.code for event in read_log(stream, "x").events] == ["EI0006"]
    wide = "错误\nEI0006: [PID: 1] x\n".encode("utf-16")
    assert [event.code for event in read_log(io.BytesIO(wide), "x").events] == ["EI0006"]


def test_a_packed_log_that_is_cut_gives_what_it_holds() -> None:
    packed = gzip.compress(b"EI0006: [PID: 1] x\n" * 2000, 0)[:20_000]
    with gzip.open(io.BytesIO(packed)) as stream:
        assert read_log(stream, "x").events  # type: ignore[arg-type]  # GzipFile reads bytes


ODD_LINES = ["[rank1]: Traceback (most recent call last):", "\x1b[31mEI0006\x1b[0m", "\r", "exitcode: -", "Root Cause"]
ODD = st.one_of(st.text(max_size=120), st.sampled_from([*TRACE.splitlines(), *SUMMARY.splitlines(), *ODD_LINES]))


@settings(max_examples=60, deadline=None)
@given(st.lists(ODD, max_size=30))
def test_no_text_crashes_the_reader(lines: list[str]) -> None:
    reading = read_log(io.BytesIO("\n".join(lines).encode("utf-8", "surrogatepass")), "x")
    assert all(event.where.startswith("x:") for event in reading.events)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=600))
def test_no_bytes_crash_the_reader(raw: bytes) -> None:
    read_log(io.BytesIO(raw), "x")
    logs_scan.looks_binary(raw)
    read_trace(raw, 0)
    read_root_cause(raw, 0)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789-:. TZ+/_IWEF,[]JanFeb", max_size=60))
def test_no_text_crashes_the_clock(text: str) -> None:
    found = time_of(text)
    assert found is None or clock_text(found)
    split_prefix(text)


def test_a_log_full_of_errors_gives_the_same_events_as_one_that_is_searched_for_them() -> None:
    dense = [line for _ in range(20) for line in ("EI0006: [PID: 1] x", "No space left on device", "", "fine")]
    sparse = "\n".join([*dense, *["fine"] * 500]).encode()
    found = read_log(io.BytesIO("\n".join(dense).encode()), "x").events
    assert [(event.code, event.where) for event in found] == [
        (event.code, event.where) for event in read_log(io.BytesIO(sparse), "x").events
    ]
    assert len(found) == 40
