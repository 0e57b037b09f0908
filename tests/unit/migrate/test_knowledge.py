"""The tables of facts hold together."""

from __future__ import annotations

from unisono.migrate.knowledge import cuda_names, find_cuda_name, libraries, variables
from unisono.migrate.report import rule_table


def test_every_name_without_counterpart_has_advice() -> None:
    assert [name for name, row in cuda_names().items() if not row.npu and not row.advice] == []


def test_the_names_that_blind_renaming_breaks_have_no_counterpart() -> None:
    for name in ("nvtx", "cudart", "nccl", "comm", "get_arch_list", "temperature"):
        assert cuda_names()[name].npu == ""
    assert cuda_names()["CUDAGraph"].npu == "NPUGraph"


def test_the_longest_known_beginning_decides() -> None:
    found = find_cuda_name("memory._record_memory_history")
    assert found is not None
    assert found.name == "memory"
    assert find_cuda_name("never_heard_of") is None


def test_variables_have_a_known_kind_and_a_note() -> None:
    for variable in variables().values():
        assert variable.kind in ("rename", "unsafe", "manual", "hint")
        assert variable.note
        assert variable.npu or variable.kind in ("manual", "hint")


def test_libraries_point_to_rules_that_exist() -> None:
    assert {code for code, _ in libraries().values()} <= set(rule_table())
