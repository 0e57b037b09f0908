"""Explain names the rank that failed first, its cause, and what followed, in every form in which logs come."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unisono.doctor.explain import explain_code, explain_folder, explain_path, explain_text
from unisono.doctor.explain_result import Explanation, ranges
from unisono.doctor.explain_text import choose_language, default_language, explanation_lines
from unisono.doctor.knowledge import LANGUAGES, entries
from unisono.errors import UserError

EI0002 = "EI0002: [PID: 1] 2025-01-02-03:34:05.000.000 The wait execution of the Notify register times out."
EI0006 = "EI0006: [PID: 1] 2025-01-02-03:06:05.000.000 Getting socket times out."
CLOSED = "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4"


def write_logs(folder: Path, logs: dict[str, list[str]]) -> Path:
    for name, lines in logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def answer(found: Explanation) -> tuple[str | None, int | None]:
    return (found.code, found.first_rank)


def followed(found: Explanation) -> dict[str, int]:
    return {item.code: item.lines for item in found.collateral}


def test_the_rank_that_ran_out_of_memory_is_named_and_the_others_time_outs_are_folded(tmp_path: Path) -> None:
    write_logs(
        tmp_path,
        {
            "rank_0.log": ["starting", EI0002, CLOSED],
            "rank_1.log": [EI0002],
            "rank_2.log": ["[ERROR] 2025-01-02-03:04:05 RuntimeError: NPU out of memory. Tried to allocate 2 GiB"],
            "rank_3.log": [EI0002, EI0002],
        },
    )
    found = explain_folder(tmp_path)
    assert answer(found) == ("X101", 2)
    assert followed(found) == {"EI0002": 4, "X114": 1}
    assert found.collateral[0].ranks == (0, 1, 3)
    assert found.evidence[0].where == "rank_2.log:1"


def test_among_causes_the_earliest_by_the_clock_is_first_whatever_the_file_order(tmp_path: Path) -> None:
    write_logs(
        tmp_path,
        {
            "node_a/rank_0.log": ["2025-01-02 03:04:09,000 ERROR No space left on device"],
            "node_b/rank_8.log": ["2025-01-02-03:04:05.000.000 (EI0011) Failed to allocate bytes of NPU memory"],
        },
    )
    found = explain_folder(tmp_path)
    assert (*answer(found), found.first_node) == ("EI0011", 8, "b")
    assert found.others == ("X122 (rank 0)",)


def test_a_skewed_clock_is_corrected_before_ranks_are_compared(tmp_path: Path) -> None:
    def log(hour: int, failure: str) -> list[str]:
        steps = [f"2025-01-02 {hour:02d}:04:{n:02d},000 INFO step {n}/99" for n in range(1, 30)]
        return [*steps, f"2025-01-02 {hour:02d}:04:{failure}"]

    write_logs(
        tmp_path,
        {
            # By its own clock node b fails an hour later; by the steps it fails three seconds earlier.
            "node_a/rank_0.log": log(3, "35,000 ERROR OSError: [Errno 28] No space left on device"),
            "node_b/rank_8.log": log(4, "32,000 ERROR RuntimeError: NPU out of memory. Tried"),
        },
    )
    found = explain_folder(tmp_path)
    assert answer(found) == ("X101", 8)
    assert "3600" in "".join(note["en"] for note in found.notes)


def test_an_exception_of_one_rank_goes_before_what_the_others_say_without_any_clock(tmp_path: Path) -> None:
    raised = [
        "Traceback (most recent call last):",
        '  File "train.py", line 7, in forward',
        "    raise KeyError(3)",
        "KeyError: 3",
    ]
    lost = ["Traceback (most recent call last):", '  File "train.py", line 9, in <module>', CLOSED]
    write_logs(tmp_path, {"rank_0.log": lost, "rank_1.log": [*raised, "Segmentation fault"], "rank_2.log": lost})
    found = explain_folder(tmp_path)
    assert (*answer(found), found.phase) == ("X141", 1, "forward")
    assert found.evidence[0].frame == "train.py:7 in forward"
    assert followed(found)["X114"] == 2


def test_what_a_rank_says_after_it_lost_its_peers_is_no_cause(tmp_path: Path) -> None:
    lost = [
        "2025-01-02 03:04:05,000 ERROR " + CLOSED,
        *(["teardown"] * 20),
        "2025-01-02 03:04:15,000 Segmentation fault",
    ]
    write_logs(
        tmp_path, {"rank_0.log": lost, "rank_1.log": ["2025-01-02 03:04:50,000 ERROR CUDA out of memory. Tried"]}
    )
    assert answer(explain_folder(tmp_path)) == ("X102", 1)


def test_the_rank_without_an_error_among_ranks_that_wait_is_the_one(tmp_path: Path) -> None:
    quiet = ["2025-01-02 03:04:05,000 INFO step 20/99"]
    write_logs(tmp_path, {f"rank_{rank}.log": [EI0002] for rank in range(4)} | {"rank_2.log": quiet})
    found = explain_folder(tmp_path)
    assert answer(found) == ("X138", 2)
    assert found.evidence[0].text == "last line: 2025-01-02 03:04:05,000 INFO step 20/99"
    assert followed(found) == {"EI0002": 3}


def test_the_rank_that_the_waiting_ones_name_is_the_one(tmp_path: Path) -> None:
    named = EI0002 + " remote rank [3]."
    write_logs(tmp_path, {f"rank_{rank}.log": [named] for rank in range(3)})
    assert answer(explain_folder(tmp_path)) == ("X138", 3)


def test_hccls_heartbeat_names_the_place_that_was_lost() -> None:
    text = """[W compiler_depend.ts:487] Warning: NPU warning, error code is 507048[Error]:
[Error]: The execution of the internal task times out.
EI0002: [PID: 7277] 2025-01-02-03:59:30.645.648 The Notify register has not received the Notify record from remote rank [unknown].
there are(is) 1 abnormal device(s):
    Cluster Exception Location[IP/ID]:[192.0.2.10/1], Discoverer:[192.0.2.10/0], ExceptionType:[Heartbeat Lost Occurred], Possible
"""
    found = explain_text(text)
    assert answer(found) == ("X138", 1)
    assert "Cluster Exception Location" in found.evidence[1].text


def test_a_rank_without_a_log_among_ranks_that_wait_is_the_one(tmp_path: Path) -> None:
    write_logs(tmp_path, {f"rank_{rank}.log": [EI0006] for rank in (0, 1, 3)})
    assert answer(explain_folder(tmp_path)) == ("X138", 2)


def test_where_all_ranks_only_wait_the_first_waiting_code_is_the_answer_and_that_is_said(tmp_path: Path) -> None:
    write_logs(tmp_path, {f"rank_{rank}.log": [EI0006] for rank in range(4)})
    found = explain_folder(tmp_path)
    assert found.code == "EI0006"
    assert "only waited" in found.notes[-1]["en"]


def test_nccls_watchdog_shows_who_is_behind() -> None:
    lines = [
        f"[rank{rank}]:[E0102 03:04:05.{rank} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={number}, OpType=ALLREDUCE) ran for 600000 milliseconds before timing out."
        for rank, number in ((0, 41), (1, 41), (2, 40), (3, 41))
    ]
    assert answer(explain_text(lines)) == ("X138", 2)


def test_a_telling_code_goes_before_a_generic_one_of_the_same_report(tmp_path: Path) -> None:
    report = [
        "RuntimeError: Initialize NPU function error: c10_npu::SetDevice, error code is 107001",
        "[ERROR] 2025-01-02-03:04:05 (PID:1, Device:0, RankID:5) ERR00100 PTA call acl api failed",
        "EE1001: [PID: 1] 2025-01-02-03:04:05.377.593 The argument is invalid. Reason: Set device failed",
    ]
    assert explain_text(report).code == "107001"
    operator = [
        "RuntimeError: call aclnnArange failed, detail:EZ9999: Inner Error!",
        "EZ9999: [PID: 775] 2025-02-16-12:18:25.258.321 Cannot find bin of op Range, integral key 0/1/|int64/ND/.",
        "[ERROR] 2025-02-16-12:18:25 (PID:775, Device:0, RankID:-1) ERR01100 OPS call acl api failed",
    ]
    assert explain_text(operator).code == "X137"
    hccp = [
        "RuntimeError: [ERROR] HCCL error in: ProcessGroupHCCL.cpp:64",
        "ERR02200 DIST call hccl api failed.",
        "EJ0001: Failed to initialize",
    ]
    assert explain_text(hccp).code == "EJ0001"


def test_plog_is_joined_to_the_rank_that_torch_npu_named_for_its_process(tmp_path: Path) -> None:
    write_logs(
        tmp_path,
        {
            "node_a/train.log": [
                "[ERROR] 2025-01-02-03:04:06 (PID:7277, Device:1, RankID:1) ERR02200 DIST call hccl api failed"
            ],
            "node_a/plog/plog-7277_20250102.log": [
                "[ERROR] HCCL(7277,python):2025-01-02-03:04:05.100.000 [link.cc:1] EJ0002: the network port is down"
            ],
            "node_b/rank_2.log": [EI0006],
        },
    )
    assert answer(explain_folder(tmp_path)) == ("EJ0002", 1)


def test_the_agents_summary_is_heard_where_the_rank_itself_could_say_nothing() -> None:
    text = """[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4
W0102 03:04:05.000000 1 torch/distributed/elastic/multiprocessing/api.py:900] Sending process 7 closing signal SIGTERM
Root Cause (first observed failure):
[0]:
  time      : 2025-01-02_03:04:05
  host      : node7
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 4242)
  traceback : Signal 9 (SIGKILL) received by PID 4242
"""
    found = explain_text(text)
    assert (*answer(found), found.first_node) == ("X131", 3, "node7")
    assert followed(found) == {"X114": 1, "X133": 1}


def test_only_the_last_life_of_a_job_that_was_restarted_counts(tmp_path: Path) -> None:
    write_logs(
        tmp_path,
        {
            "logs/attempt_0/rank_0.log": ["2025-01-02 03:04:05,000 ERROR No space left on device"],
            "logs/attempt_1/rank_1.log": ["2025-01-02 04:04:05,000 ERROR NPU out of memory. Tried"],
        },
    )
    assert answer(explain_folder(tmp_path)) == ("X101", 1)
    both = [
        "rank 0 starts, attempt 0, process 1",
        "No space left on device",
        "rank 0 starts, attempt 1, process 2",
        "NPU out of memory",
    ]
    assert explain_text(both).code == "X101"


def test_a_loader_workers_own_exception_is_told_not_its_wrapper() -> None:
    text = """Traceback (most recent call last):
  File "torch/utils/data/dataloader.py", line 7, in _next_data
RuntimeError: Caught UnidentifiedImageError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "PIL/Image.py", line 9, in open
PIL.UnidentifiedImageError: cannot identify image file 'cat/1.jpg'
"""
    found = explain_text(text)
    assert (found.code, found.phase) == ("X120", "data")


def test_a_warning_that_a_connection_is_retried_is_no_failure() -> None:
    lines = [
        "[W0102 03:04:05.1 socket.cpp:601] The client socket has failed to connect (Connection refused).",
        "RuntimeError: Tensors must be contiguous",
    ]
    found = explain_text(lines)
    assert (found.code, found.collateral) == ("X126", ())


RECORD = {
    "rank": 1,
    "phase": "backward",
    "step": 17,
    "signal": "SIGKILL",
    "message": "ended by SIGKILL",
    "traceback": "",
    "time": 1735787045.5,
}


def test_the_launchers_record_decides_who_was_first(tmp_path: Path) -> None:
    write_logs(tmp_path, {"logs/rank_0.log": [CLOSED, "Segmentation fault"], "failure.json": [json.dumps(RECORD)]})
    found = explain_folder(tmp_path)
    assert (*answer(found), found.phase, found.step) == ("X131", 1, "backward", 17)
    assert followed(found) == {"X114": 1}
    assert answer(explain_path(tmp_path / "failure.json")) == ("X131", 1)


def test_a_record_with_an_exit_code_alone_is_joined_with_that_ranks_log(tmp_path: Path) -> None:
    record = RECORD | {"signal": None, "exit_code": 17, "message": "ended with exit code 17"}
    write_logs(tmp_path, {"logs/rank_0.log": [CLOSED], "failure.json": [json.dumps(record)]})
    assert answer(explain_folder(tmp_path)) == ("X139", 1)
    write_logs(tmp_path, {"logs/rank_1.log": ["simulated fault: rank 1, after 3 steps is gone"]})
    assert answer(explain_folder(tmp_path)) == ("X134", 1)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"rank": "one"}', '{"rank": true}', "null", '{"rank": 0, "time": "x", "step": [], "phase": 3}'],
)
def test_a_damaged_record_does_not_hide_the_logs(text: str, tmp_path: Path) -> None:
    write_logs(tmp_path, {"logs/rank_0.log": ["NPU out of memory. Tried"], "failure.json": [text]})
    assert answer(explain_folder(tmp_path)) == ("X101", 0)


def test_where_nothing_is_known_the_last_lines_that_look_like_an_error_are_shown(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("fine\nfatal: the flux failed to frob\nfine\n", encoding="utf-8")
    found = explain_path(tmp_path / "a.log")
    assert found.entry is None
    assert found.last_lines == ("fatal: the flux failed to frob",)
    assert "nothing known" in explanation_lines(found, "en")[0]
    assert "未发现" in explanation_lines(found, "zh")[0]
    assert "no line that looks like an error" in explanation_lines(explain_text("all fine"), "en")[0]


def test_wrong_inputs_are_coded_errors(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04" + bytes(range(256)) * 40)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: explain_code("EI00066"), "H201"),
        (lambda: explain_path(tmp_path / "none.log"), "H202"),
        (lambda: explain_folder(tmp_path / "none"), "H202"),
        (lambda: explain_folder(tmp_path), "H203"),
        (lambda: choose_language("fr"), "H204"),
        (lambda: explain_path(tmp_path / "model.pt"), "H206"),
        (lambda: explain_path(tmp_path / "empty.log"), "H207"),
    ]
    for call, code in calls:
        with pytest.raises(UserError) as caught:
            call()
        assert caught.value.code == code


def test_an_unknown_code_is_answered_with_near_ones_and_its_module() -> None:
    with pytest.raises(UserError, match="EI0006"):
        explain_code("EI00066")
    with pytest.raises(UserError, match="HCCL"):
        explain_code("EI0099")


def test_every_known_code_is_explained_in_both_languages_and_as_json() -> None:
    for code in entries():
        found = explain_code(code.lower())
        assert found.code == code
        assert json.dumps(found.to_plain())
        for language in LANGUAGES:
            assert explanation_lines(found, language)[0].startswith(code)


def test_damaged_files_beside_logs_are_counted_and_passed_over(tmp_path: Path) -> None:
    write_logs(tmp_path, {"rank_0.log": ["NPU out of memory. Tried"], "rank_2.log": []})
    (tmp_path / "rank_1.log").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "cut.log").write_bytes("EI0006: 建链".encode()[:-1])
    found = explain_folder(tmp_path)
    assert answer(found) == ("X101", 0)
    assert "1 files" in found.notes[-1]["en"]
    assert followed(found) == {"EI0006": 1}


def test_a_link_that_leads_in_a_circle_ends(tmp_path: Path) -> None:
    write_logs(tmp_path, {"logs/rank_0.log": ["NPU out of memory. Tried"]})
    (tmp_path / "logs" / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "logs" / "nowhere.log").symlink_to(tmp_path / "gone.log")
    assert answer(explain_folder(tmp_path)) == ("X101", 0)


def test_the_language_is_the_locales_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    assert default_language() == "en"
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert (choose_language(None), choose_language("en")) == ("zh", "en")


def test_rank_numbers_are_shown_as_ranges() -> None:
    assert ranges([3, 0, 1, 2, 7, 7, 9]) == "0-3,7,9"


PREFIXES = ["", "[rank1]: ", "[0]:", "2025-01-02 03:04:05 ", "\x1b[1m"]
SENTENCES = [
    EI0002,
    EI0006,
    CLOSED,
    "NPU out of memory",
    "Traceback (most recent call last):",
    "ValueError: x",
    "step 3",
    "exitcode: -9) local_rank: 1",
    "remote rank [99999999999999]",
    "[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)",
    "Root Cause",
    "  rank : 1",
    "  exitcode : -9",
]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PREFIXES), st.sampled_from(SENTENCES) | st.text(max_size=40)), max_size=25))
def test_any_mixture_of_lines_is_explained_without_a_crash(parts: list[tuple[str, str]]) -> None:
    found = explain_text([prefix + text for prefix, text in parts])
    assert json.dumps(found.to_plain())
    for language in LANGUAGES:
        assert explanation_lines(found, language)
