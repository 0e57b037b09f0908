"""A download is whole or absent, made once, and checked."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from unisono.data.download import Archive, download
from unisono.errors import UserError


class Counting(http.server.SimpleHTTPRequestHandler):
    requests: list[str] = []  # noqa: RUF012  # the handler class is made per request; this list is the test's counter

    def do_GET(self) -> None:  # the standard library's name
        self.requests.append(self.path)
        super().do_GET()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    served = tmp_path / "served"
    served.mkdir()
    Counting.requests.clear()
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Counting, directory=str(served))
    ) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}", served
        running.shutdown()


def test_four_at_once_fetch_once_and_all_find_it_whole(server: tuple[str, Path], tmp_path: Path) -> None:
    address, served = server
    data = b"x" * 3_000_000
    (served / "set.gz").write_bytes(data)
    archives = (Archive(f"{address}/set.gz", hashlib.md5(data).hexdigest()),)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download("set", tmp_path / "out", archives), range(4)))
    assert (tmp_path / "out" / "set.gz").read_bytes() == data
    assert len(Counting.requests) == 1
    assert not list((tmp_path / "out").glob("*.part"))


def test_another_checksum_is_refused_and_leaves_nothing_that_passes_for_the_set(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    address, served = server
    (served / "set.gz").write_bytes(b"cut")
    with pytest.raises(UserError) as caught:
        download("set", tmp_path / "out", (Archive(f"{address}/set.gz", "0" * 32),))
    assert caught.value.code == "D122"
    assert [path.name for path in (tmp_path / "out").iterdir() if not path.name.startswith(".")] == []


def test_a_cut_file_from_before_is_fetched_again(server: tuple[str, Path], tmp_path: Path) -> None:
    address, served = server
    (served / "set.gz").write_bytes(b"whole")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "set.gz").write_bytes(b"who")
    download("set", tmp_path / "out", (Archive(f"{address}/set.gz", hashlib.md5(b"whole").hexdigest()),))
    assert (tmp_path / "out" / "set.gz").read_bytes() == b"whole"


def test_an_archive_is_unpacked_whole_and_once(server: tuple[str, Path], tmp_path: Path) -> None:
    address, served = server
    with tarfile.open(served / "set.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("folder/file")
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    md5 = hashlib.md5((served / "set.tar.gz").read_bytes()).hexdigest()
    for _ in range(2):
        download("set", tmp_path / "out", (Archive(f"{address}/set.tar.gz", md5, unpack=True),))
    assert (tmp_path / "out" / "folder" / "file").read_bytes() == b"abc"
    assert len(Counting.requests) == 1


def test_no_server_and_no_such_set_are_coded_errors(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        download("set", tmp_path, (Archive("http://127.0.0.1:9/none", "0" * 32),))
    assert caught.value.code == "D121"
    with pytest.raises(UserError) as caught:
        download("imagenet", tmp_path)
    assert caught.value.code == "D120"
