"""Fetching public sets: once a machine, whole or not at all, checked against published checksums."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tarfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from unisono.errors import UserError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Archive:
    """A file to fetch."""

    url: str
    md5: str
    unpack: bool = False


_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
# Addresses and MD5 sums as the sets' authors publish them (zalandoresearch/fashion-mnist; Krizhevsky's CIFAR page).
ARCHIVES: dict[str, tuple[Archive, ...]] = {
    "fashion_mnist": (
        Archive(f"{_FASHION}/train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        Archive(f"{_FASHION}/train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        Archive(f"{_FASHION}/t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        Archive(f"{_FASHION}/t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    "cifar10": (
        Archive(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a", unpack=True
        ),
    ),
    "cifar100": (
        Archive(
            "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85", unpack=True
        ),
    ),
}
_CHUNK = 2**20


def download(
    name: str, folder: Path, archives: tuple[Archive, ...] | None = None, say: Callable[[str], None] = log.info
) -> None:
    """Fetch what is missing of a public set. Safe to call on every process of a machine: one fetches, the others wait.

    Raises:
        UserError: D120 a set that is not public, D121 not fetched, D122 another checksum, D123 the folder cannot be written.
    """
    wanted = ARCHIVES.get(name, ()) if archives is None else archives
    if not wanted:
        raise UserError.unknown("D120", "public data set", name, ARCHIVES)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / ".download.lock"):
            for archive in wanted:
                _fetch(archive, folder, say)
    except OSError as error:
        if isinstance(error, urllib.error.URLError):
            raise
        raise UserError(
            "D123", f"cannot write to {folder}", error.strerror or str(error), "choose another folder"
        ) from error


def _fetch(archive: Archive, folder: Path, say: Callable[[str], None]) -> None:
    target = folder / archive.url.rpartition("/")[2]
    if target.is_file() and _md5(target) == archive.md5:
        say(f"{target.name} is there already")
    else:
        say(f"fetching {archive.url}")
        part = target.with_name(target.name + ".part")
        _copy(archive.url, part)
        found = _md5(part)
        if found != archive.md5:
            part.unlink()
            raise UserError(
                "D122",
                f"{archive.url} gave other bytes",
                f"MD5 {found}, published {archive.md5}",
                "try again; a proxy or a cut connection may have changed it",
            )
        part.rename(target)
    if archive.unpack:
        _unpack(target, folder)


def _copy(url: str, part: Path) -> None:
    try:
        with urllib.request.urlopen(url, timeout=60) as source, open(part, "wb") as out:
            shutil.copyfileobj(source, out, _CHUNK)
    except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
        part.unlink(missing_ok=True)
        raise UserError(
            "D121",
            f"cannot fetch {url}",
            str(getattr(error, "reason", error)),
            f"fetch it elsewhere and put it into {part.parent}",
        ) from None


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack beside the target and move each folder into place at once, so that no cut set passes for a whole one."""
    with tarfile.open(archive) as tar:
        tops = sorted({member.name.split("/")[0] for member in tar.getmembers()})
        if all((folder / top / ".whole").is_file() for top in tops):
            return
        staging = folder / ".unpacking"
        shutil.rmtree(staging, ignore_errors=True)
        tar.extractall(staging, filter="data")
    for top in tops:
        (staging / top / ".whole").touch()
        shutil.rmtree(folder / top, ignore_errors=True)
        (staging / top).rename(folder / top)
    shutil.rmtree(staging, ignore_errors=True)


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
