"""Explain names the rank that failed first, in every form in which logs come."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unisono.doctor.explain import Explanation, explain_code, explain_folder, explain_path, explain_text
from unisono.doctor.explain_text import explanation_lines
from unisono.doctor.knowledge import LANGUAGES, entries, patterns
from unisono.doctor.logs import codes_of
from unisono.doctor.logs_clock import time_of
from unisono.doctor.logs_owner import rank_and_node_of
from unisono.errors import UserError


def code_of(explanation: Explanation) -> str | None:
    return explanation.entry.code if explanation.entry else None


def test_at_least_250_codes_of_the_vendor_are_known_in_both_languages_with_source() -> None:
    vendor = [entry for code, entry in entries().items() if not code.startswith("X") and entry.source != "unisono"]
    assert len(vendor) >= 250
    for entry in entries().values():
        assert entry.source
        for language in LANGUAGES:
            assert entry.title[language]
            assert entry.cause[language]
            assert entry.remedy[language]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("EI0006: [PID: 12] 2025-01-02-03:04:05.678.901 Getting socket times out.", "EI0006"),
        ("[PID: 7] 2025-01-02-03:04:05.678.901 Communication_Error_Bind_IP_Port(EI0019): Failed to listen.", "EI0019"),
        ("\x1b[31m[rank3]: RuntimeError: NPU function error: SetDevice, error code is 107001\x1b[0m", "107001"),
        ("[default0]:ERR02200 DIST call hccl api failed.", "ERR02200"),
        ("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB", "X101"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "X102"),
        ("RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error.", "X104"),
        ("The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).", "X105"),
        ("ImportError: libtorch_npu.so: undefined symbol: _ZN3c10", "X106"),
        ("ImportError: libhccl.so: cannot open shared object file: No such file or directory", "X107"),
        ("RuntimeError: [pair.cc:545] Read error [127.0.0.1]:4: Connection reset by peer.", "X114"),
        ("error T301: loss not finite for 20 steps in a row at step 7", "T301"),
        ("错误：EI0006 建链超时", "EI0006"),
        ("OSError: [Errno 28] No space left on device", "X122"),
    ],
)
def test_a_line_of_any_form_gives_its_code(line: str, code: str) -> None:
    assert code_of(explain_text([line + "\n"])) == code


def test_ordinary_lines_give_no_code() -> None:
    for line in (
        "step 10/20  loss 0.3  lr 0.1",
        "E1234 is a room",
        "downloaded 107001 images",
        "epoch 12 ended, no errors",
        "https://e.org/EI00061",
    ):
        assert codes_of(line) == [], line


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2025-01-02-03:04:05.678.901", 0.678901), ("2025-01-02 03:04:05,678", 0.678), ("2025-01-02T03:04:05", 0.0)],
)
def test_times_are_read_in_the_styles_of_cann_python_and_iso(text: str, seconds: float) -> None:
    found = time_of(f"x {text} y")
    assert found is not None
    assert found % 60 == pytest.approx(5 + seconds)


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank_3.log", 3),
        ("logs/attempt_0/rank_12.log", 12),
        ("attempt_0/5/stdout.log", 5),
        ("train_7.log", 7),
        ("plog/x.log", None),
    ],
)
def test_a_files_name_tells_its_rank(name: str, rank: int | None) -> None:
    assert rank_and_node_of(Path("/r") / name, Path("/r"))[0] == rank


def write_ranks(folder: Path, lines: dict[str, list[str]]) -> Path:
    for name, text in lines.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return folder


def test_the_rank_that_ran_out_of_memory_is_named_and_the_others_time_outs_are_folded(tmp_path: Path) -> None:
    timeout = "EI0002: [PID: 1] 2025-01-02-03:34:05.000.000 The wait execution of the Notify register times out."
    write_ranks(
        tmp_path,
        {
            "rank_0.log": ["starting", timeout, "Connection closed by peer"],
            "rank_1.log": [timeout],
            "rank_2.log": ["[ERROR] 2025-01-02-03:04:05 RuntimeError: NPU out of memory. Tried to allocate 2 GiB"],
            "rank_3.log": [timeout, timeout],
        },
    )
    found = explain_folder(tmp_path)
    assert (code_of(found), found.first_rank) == ("X101", 2)
    assert [(item.code, item.lines) for item in found.collateral if item.code == "EI0002"] == [("EI0002", 4)]
    assert found.evidence[0].where == "rank_2.log:1"


def test_among_causes_the_earliest_by_the_clock_is_first_whatever_the_file_order(tmp_path: Path) -> None:
    write_ranks(
        tmp_path,
        {
            "node_a/rank_0.log": ["2025-01-02 03:04:09,000 ERROR No space left on device"],
            "node_b/rank_8.log": ["2025-01-02 03:04:05,000 ERROR EI0011 Failed to allocate bytes of NPU memory"],
        },
    )
    found = explain_folder(tmp_path)
    assert (code_of(found), found.first_rank, found.first_node) == ("EI0011", 8, "b")
    assert any("X122" in other for other in found.others)


def test_where_all_ranks_only_wait_a_waiting_code_is_the_answer(tmp_path: Path) -> None:
    write_ranks(tmp_path, {f"rank_{rank}.log": ["EI0006: [PID: 1] Getting socket times out."] for rank in range(4)})
    assert code_of(explain_folder(tmp_path)) == "EI0006"


def test_a_telling_code_goes_before_a_generic_one_of_the_same_report(tmp_path: Path) -> None:
    write_ranks(
        tmp_path,
        {
            "rank_0.log": [
                "ERR00100 PTA call acl api failed",
                "EE1001: [PID: 1] The argument is invalid.",
                "error code is 107001",
            ]
        },
    )
    assert code_of(explain_folder(tmp_path)) in ("EE1001", "107001")


def test_the_launchers_record_decides_who_was_first(tmp_path: Path) -> None:
    write_ranks(tmp_path / "logs", {"rank_0.log": ["RuntimeError: Connection reset by peer"]})
    record = {
        "rank": 1,
        "phase": "backward",
        "step": 17,
        "signal": "SIGKILL",
        "message": "ended by SIGKILL",
        "traceback": "",
    }
    (tmp_path / "failure.json").write_text(json.dumps(record), encoding="utf-8")
    found = explain_folder(tmp_path)
    assert (code_of(found), found.first_rank, found.phase, found.step) == ("X131", 1, "backward", 17)
    assert [(item.code, item.lines) for item in found.collateral] == [("X114", 1)]


def test_a_log_without_known_errors_says_so_and_shows_its_last_error_lines(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("fine\nZeroDivisionError: division by zero\nfine\n", encoding="utf-8")
    found = explain_path(tmp_path / "a.log")
    assert found.entry is None
    assert found.last_lines == ("ZeroDivisionError: division by zero",)
    assert "nothing known" in explanation_lines(found, "en")[0]
    assert "未发现" in explanation_lines(found, "zh")[0]


def test_wrong_inputs_are_coded_errors_with_near_names(tmp_path: Path) -> None:
    for call, code in (
        (lambda: explain_code("EI00066"), "H201"),
        (lambda: explain_path(tmp_path / "none.log"), "H202"),
        (lambda: explain_folder(tmp_path), "H203"),
    ):
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code == code
    with pytest.raises(UserError) as caught:
        explain_code("EI00066")
    assert "EI0006" in caught.value.fix


def test_a_binary_file_is_refused_and_a_cut_one_read(tmp_path: Path) -> None:
    (tmp_path / "binary.log").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "cut.log").write_bytes("EI0006: 建链".encode()[:-1])
    with pytest.raises(UserError) as caught:
        explain_path(tmp_path / "binary.log")
    assert caught.value.code == "H206"
    assert code_of(explain_path(tmp_path / "cut.log")) == "EI0006"


@given(st.lists(st.text(max_size=200), max_size=30))
def test_no_text_crashes_the_reader(lines: list[str]) -> None:
    explanation_lines(explain_text(lines), "zh")


@given(st.text(alphabet="0123456789-:. TEIWF,[]", max_size=60))
def test_no_text_crashes_the_clock(text: str) -> None:
    time_of(text)


def test_every_pattern_is_found_by_the_cheap_look_that_goes_before_it() -> None:
    examples = {
        "X101": "NPU out of memory",
        "X105": "address already in use",
        "X113": "Watchdog caught collective operation timeout",
        "X117": "Name or service not known",
        "X118": "Connection refused",
        "X125": "Expected to have finished reduction in the prior iteration",
        "X126": "Tensors must be contiguous",
        "X128": "Torch not compiled with CUDA enabled",
        "X129": "No module named 'apex'",
        "X130": "rank 1 gave no sign of life for 180 s",
        "X134": "injected: this rank raises",
        "X136": "will fall back to run on the CPU",
    }
    known = {pattern.code for pattern in patterns()}
    for code, text in examples.items():
        assert code in known
        assert code_of(explain_text([text])) == code, text
