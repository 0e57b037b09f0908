"""Many files: finding them, encodings, writing in place and elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unisono.errors import UserError
from unisono.migrate.findings import Options
from unisono.migrate.tree import gather, migrate_files, write_elsewhere, write_in_place


def tree(folder: Path, **files: str | bytes) -> Path:
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py").replace("_sh", ".sh")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def run(folder: Path, jobs: int = 1) -> list:
    return migrate_files(gather([folder]), Options(), jobs)


def test_environments_and_caches_are_not_gone_through(tmp_path: Path) -> None:
    tree(tmp_path, a_py="x.cuda()\n", **{".venv__b_py": "x.cuda()\n", "__pycache____c_py": "x.cuda()\n"})
    assert [file.relative for file in gather([tmp_path])] == [Path("a.py")]


def test_a_file_named_twice_is_migrated_once(tmp_path: Path) -> None:
    tree(tmp_path, a_py="x.cuda()\n")
    assert len(gather([tmp_path, tmp_path / "a.py"])) == 1


def test_a_missing_path_and_an_empty_folder_are_refused(tmp_path: Path) -> None:
    for path, code in ((tmp_path / "no", "G101"), (tmp_path, "G102")):
        with pytest.raises(UserError) as caught:
            gather([path])
        assert caught.value.code == code


def test_a_latin_1_source_stays_latin_1(tmp_path: Path) -> None:
    raw = "# -*- coding: latin-1 -*-\nimport torch\nname = 'Gr\u00fc\u00dfe'\nx.cuda()\n".encode("latin-1")
    tree(tmp_path, a_py=raw)
    write_in_place(run(tmp_path))
    expected = raw.replace(b"x.cuda", b"x.npu").replace(b"import torch\n", b"import torch\nimport torch_npu\n")
    assert (tmp_path / "a.py").read_bytes() == expected


def test_bytes_of_another_encoding_are_reported_and_the_rest_goes_on(tmp_path: Path) -> None:
    tree(tmp_path, a_py=b"import torch\ns = '\xff'\nx.cuda()\n", b_py="import torch\nx.cuda()\n")
    bad, good = run(tmp_path)
    assert bad.error
    assert [f.code for f in bad.findings] == ["M001"]
    assert good.changed


def test_writing_keeps_mode_bits_links_and_untouched_files(tmp_path: Path) -> None:
    tree(tmp_path, a_py="#!/usr/bin/env python\nimport torch\nx.cuda()\n", b_py="y = 1\n")
    os.chmod(tmp_path / "a.py", 0o750)
    (tmp_path / "link.py").symlink_to("a.py")
    untouched = (tmp_path / "b.py").stat()
    assert write_in_place(run(tmp_path)) == 1
    assert (tmp_path / "a.py").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "b.py").stat().st_mtime_ns == untouched.st_mtime_ns
    assert (tmp_path / "b.py").stat().st_ino == untouched.st_ino
    assert not list(tmp_path.glob(".*.part"))


def test_a_copy_elsewhere_holds_everything_and_leaves_the_source(tmp_path: Path) -> None:
    source = tree(tmp_path / "in", a_py="import torch\nx.cuda()\n", sub__b_py="y = 1\n", notes="text\n")
    files = gather([source])
    write_elsewhere(files, migrate_files(files, Options(), 1), tmp_path / "out", [source])
    assert "npu" in (tmp_path / "out" / "a.py").read_text()
    assert (tmp_path / "out" / "sub" / "b.py").read_text() == "y = 1\n"
    assert (tmp_path / "out" / "notes").read_text() == "text\n"
    assert "cuda" in (source / "a.py").read_text()


def test_a_copy_into_the_source_is_refused(tmp_path: Path) -> None:
    source = tree(tmp_path, a_py="import torch\nx.cuda()\n")
    files = gather([source])
    with pytest.raises(UserError) as caught:
        write_elsewhere(files, migrate_files(files, Options(), 1), tmp_path / "out", [source])
    assert caught.value.code == "G105"


def test_several_processes_give_what_one_gives_in_the_same_order(tmp_path: Path) -> None:
    for index in range(12):
        body = "import torch\n" + f"x{index} = torch.ones(1).cuda({index})\n" * 300
        (tmp_path / f"f{index:02}.py").write_text(body)
    assert run(tmp_path, jobs=2) == run(tmp_path, jobs=1)
