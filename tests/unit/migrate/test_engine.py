"""One source: what survives a migration, and what is said of a source that cannot be migrated."""

from __future__ import annotations

import pytest

from unisono.migrate.engine import migrate_text
from unisono.migrate.findings import FixKind, Options, Target


def npu(text: str, **options: object) -> str:
    return migrate_text(text, Options(**options)).after  # type: ignore[arg-type]  # keywords of Options


def codes(text: str, **options: object) -> list[str]:
    return [f.code for f in migrate_text(text, Options(**options)).findings]  # type: ignore[arg-type]  # keywords of Options


def test_line_endings_of_windows_survive_in_old_and_new_lines() -> None:
    after = npu("import torch\r\nx = y.cuda()\r\n")
    assert after == "import torch\r\nimport torch_npu\r\nx = y.npu()\r\n"


def test_tabs_odd_spaces_and_a_missing_last_newline_survive() -> None:
    before = "import torch\nif 1 :\n\tx  =  y.cuda( )   # why\n\tz = [1,\n  2 ]"
    assert npu(before) == before.replace("cuda", "npu").replace("torch\n", "torch\nimport torch_npu\n", 1)


def test_a_byte_order_mark_stays_in_front() -> None:
    assert npu("\ufeffimport torch\nx.cuda()\n").startswith("\ufeffimport torch\nimport torch_npu\n")


def test_wide_characters_before_a_place_do_not_shift_the_edit() -> None:
    result = migrate_text("import torch\ns = '设备设备'; x.cuda()\n", Options())
    assert result.after.endswith("s = '设备设备'; x.npu()\n")
    assert [(f.line, f.column) for f in result.findings] == [(2, 13)]


def test_a_source_that_does_not_parse_is_reported_and_left() -> None:
    text = "import torch\nx = torch.cuda.(\n"
    result = migrate_text(text, Options())
    assert result.after == text
    assert [f.code for f in result.findings] == ["M001"]
    assert "line 2" in result.error


def test_python_2_is_reported_and_left() -> None:
    text = "import torch\nprint 'cuda'\n"
    assert migrate_text(text, Options()).after == text
    assert codes(text) == ["M001"]


def test_nesting_beyond_the_parser_is_reported_and_left() -> None:
    text = "import torch\nx = " + "(" * 5000 + "1" + ")" * 5000 + "\n"
    result = migrate_text(text, Options())
    assert result.after == text
    assert result.error


def test_nothing_is_parsed_where_no_word_of_cuda_stands() -> None:
    text = "this is not python, and need not be\n"
    assert migrate_text(text, Options()).findings == ()


@pytest.mark.parametrize("text", ["", "\n", "# cuda\n", '"""cuda"""\n'])
def test_empty_sources_stay_empty(text: str) -> None:
    assert npu(text) == text
    assert codes(text) == []


def test_torch_npu_is_imported_behind_docstring_future_and_the_first_torch() -> None:
    after = npu(
        '"""Doc."""\nfrom __future__ import annotations\nimport os\nimport torch as th\nth.cuda.synchronize()\n'
    )
    assert "import torch as th\nimport torch_npu\nth.npu.synchronize()\n" in after


def test_torch_npu_comes_before_an_import_from_torch_npu_s_own_names() -> None:
    after = npu("from torch.cuda.amp import autocast\nimport torch\n")
    assert after == "import torch_npu\nfrom torch.npu.amp import autocast\nimport torch\n"


def test_torch_npu_is_not_imported_a_second_time() -> None:
    text = "import torch\ntry:\n    import torch_npu\nexcept ImportError:\n    pass\nx.cuda()\n"
    assert npu(text).count("import torch_npu") == 1


def test_an_import_inside_a_function_is_enough_to_load_torch_npu_at_the_top() -> None:
    after = npu("import os\n\n\ndef f(x):\n    import torch\n    return torch.ones(1).cuda()\n")
    assert after.startswith("import torch_npu\nimport os\n")


def test_a_row_for_npu_that_is_there_already_is_not_doubled() -> None:
    text = 'BACKENDS = {"cuda": "nccl", "npu": "hccl", "cpu": "gloo"}\n'
    assert npu(text) == text


def test_unsafe_fixes_can_be_left_out_and_are_then_reported() -> None:
    text = "import torch\nx = torch.load(path)\n"
    result = migrate_text(text, Options(safe_only=True))
    assert result.after == text
    assert [(f.code, f.fixed, f.fix_kind) for f in result.findings] == [("M601", False, FixKind.UNSAFE)]


def test_only_and_ignore_choose_by_code_or_family() -> None:
    text = "import torch\nx.cuda()\ntorch.cuda.synchronize()\n"
    assert codes(text, only=("M1",)) == ["M102"]
    assert codes(text, ignore=("M102",)) == ["M201"]
    assert "x.cuda()" in npu(text, ignore=("M1",))


def test_a_local_name_called_cuda_is_never_taken_for_the_module() -> None:
    text = "import torch\ndef f(device, cuda=True):\n    return cuda.is_available, cuda\n"
    assert npu(text) == text


def test_aliases_of_aliases_are_followed() -> None:
    after = npu("import torch\nt = torch\nc = t.cuda\nc.CUDAGraph()\n")
    assert after == "import torch\nimport torch_npu\nt = torch\nc = t.npu\nc.NPUGraph()\n"


def test_a_name_used_before_the_global_statement_keeps_the_file_as_it_was() -> None:
    text = (
        "from apex import amp\ndef main(model, optimizer, state):\n    amp.load_state_dict(state)\n"
        "    model, optimizer = amp.initialize(model, optimizer, opt_level='O1')\n"
    )
    result = migrate_text(text, Options())
    assert result.after == text
    assert "M002" in [f.code for f in result.findings]
    assert not any(f.fixed for f in result.findings)


def test_a_scaler_of_another_file_is_reported_as_switched_off() -> None:
    text = "from apex import amp\ndef step(loss, opt):\n    with amp.scale_loss(loss, opt) as s:\n        s.backward()\n    opt.step()\n"
    left = [f for f in migrate_text(text, Options()).findings if f.left]
    assert any(f.code == "M501" and "switched off" in f.why for f in left)


def test_portable_code_keeps_cuda_beside_npu_in_comparisons() -> None:
    after = migrate_text("if device.type == 'cuda':\n    pass\n", Options(target=Target.PORTABLE)).after
    assert after == "if device.type in ('cuda', 'npu'):\n    pass\n"


def test_portable_code_does_not_overwrite_a_name_it_would_need() -> None:
    text = "import torch\nACCELERATOR = 3\nx = torch.ones(1, device='cuda')\n"
    result = migrate_text(text, Options(target=Target.PORTABLE))
    assert "ACCELERATOR = 3\n" in result.after
    assert "device=ACCELERATOR_TYPE" in result.after
