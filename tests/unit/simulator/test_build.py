"""Where the built extension is kept, and what is said when it cannot be built."""

from __future__ import annotations

from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.simulator import build, real


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNISONO_CACHE", str(tmp_path / "mine"))
    assert build.cache_dir() == tmp_path / "mine" / "simulator"
    monkeypatch.delenv("UNISONO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert build.cache_dir() == tmp_path / "xdg" / "unisono" / "simulator"


def test_the_fingerprint_changes_with_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = build.fingerprint()
    assert build.fingerprint() == before
    (tmp_path / "bindings.cpp").write_text("// other")
    monkeypatch.setattr(build, "source_dir", lambda: tmp_path)
    assert build.fingerprint() != before


def test_a_missing_compiler_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNISONO_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.delitem(build.sys.modules, build.NAME, raising=False)
    with pytest.raises(UserError) as refusal:
        build.load_extension()
    assert refusal.value.code == "S110"
    assert "apt-get install g++" in refusal.value.fix


def test_sources_that_do_not_compile_are_told_by_their_first_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        raise RuntimeError("[1/2] c++ a.cpp\na.cpp:3:1: error: 'x' does not name a type\nninja: build stopped")

    monkeypatch.setenv("UNISONO_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "_compile", fail)
    monkeypatch.setattr(build, "_require_compiler", lambda: None)
    monkeypatch.delitem(build.sys.modules, build.NAME, raising=False)
    said: list[str] = []
    with pytest.raises(UserError) as refusal:
        build.load_extension(said.append)
    assert refusal.value.code == "S111"
    assert "does not name a type" in refusal.value.why
    assert "building the simulated NPU" in said[0]
    assert not list((tmp_path / "simulator").glob("build-*"))


def test_a_compiler_that_fails_is_a_coded_error_and_leaves_no_half_built_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNISONO_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(UserError) as refusal:
        build.ensure_built(lambda _: None)
    assert (refusal.value.code, int(refusal.value.exit_code)) == ("S111", 3)
    assert [path.name for path in (tmp_path / "simulator").iterdir() if not path.name.endswith(".lock")] == []


def test_a_cache_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("UNISONO_CACHE", str(tmp_path / "file"))
    monkeypatch.delitem(build.sys.modules, build.NAME, raising=False)
    with pytest.raises(UserError) as refusal:
        build.load_extension()
    assert refusal.value.code == "S114"


def test_it_refuses_to_start_beside_npus_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "_real_torch_npu_installed", lambda: True)
    monkeypatch.setattr(real, "_real_npus", lambda: 8)
    with pytest.raises(UserError) as refusal:
        real.refuse_beside_real_npus()
    assert refusal.value.code == "S101"
    assert "8 NPUs" in refusal.value.why


def test_a_torch_npu_that_finds_no_npu_is_no_hindrance(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "torch_npu").mkdir()
    (tmp_path / "torch_npu" / "__init__.py").write_text("raise OSError('libascendcl.so: cannot open')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert real._real_torch_npu_installed()
    real.refuse_beside_real_npus()
