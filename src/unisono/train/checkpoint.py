"""Checkpoints: whole or absent, checked on load, of tensors and plain types only, the same bytes on any machine."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unisono.distributed.collectives import any_rank, broadcast_object
from unisono.distributed.session import Session
from unisono.errors import ExitCode, UserError
from unisono.train.digest import digest_of

log = logging.getLogger(__name__)

FORMAT = 1
_NUMBERED = re.compile(r"^step_(\d+)\.pt$")


def to_cpu(tree: Any) -> Any:
    """A copy of a tree with every tensor on the CPU in memory of its own.

    Equal strings become one object: pickle writes a second mention of an object otherwise than an equal one, and the
    files of two runs with the same content are to be the same bytes.
    """
    if isinstance(tree, Tensor):
        return tree.detach().to("cpu", copy=True).contiguous()
    if isinstance(tree, dict):
        return {to_cpu(key): to_cpu(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [to_cpu(value) for value in tree]
    return sys.intern(tree) if type(tree) is str else tree


def write_whole(path: Path, payload: dict[str, Any], digest: str | None = None) -> str:
    """Write a checkpoint so that after a crash at any moment there is the old file, the new one, or none.

    Temporary file beside it, fsync, rename, fsync of the folder. Returns the digest stored inside, which is the
    payload's; pass it where it is known.
    """
    digest = digest or digest_of(payload)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save({"format": FORMAT, "digest": digest, "payload": payload}, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)
    return digest


def read_whole(path: Path) -> dict[str, Any]:
    """The payload of a checkpoint whose every byte of content is as it was written.

    Raises:
        UserError: C101 no such file, C102 not a whole checkpoint, C103 written by a newer version.
    """
    if not path.is_file():
        raise UserError(
            "C101", f"no checkpoint {path}", "there is no file of that name", "check the path, or use --resume auto"
        )
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
        damage = (
            None
            if stored["format"] > FORMAT or digest_of(stored["payload"]) == stored["digest"]
            else "its checksum does not match its content"
        )
    except Exception as error:  # whatever a damaged zip or pickle raises: there are a dozen kinds
        stored, damage = (
            {},
            f"it cannot be read ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no details'})",
        )
    if damage:
        raise UserError(
            "C102",
            f"{path} is not a whole checkpoint",
            damage,
            "use an older checkpoint of the same folder; --resume auto finds the newest whole one",
        )
    if stored["format"] > FORMAT:
        raise UserError(
            "C103",
            f"{path} has format {stored['format']}",
            f"this version reads formats up to {FORMAT}",
            "update unisono",
        )
    payload: dict[str, Any] = stored["payload"]
    return payload


def read_on_all_ranks(path: Path, session: Session) -> dict[str, Any]:
    """`read_whole`, also where machines share no file system: ranks that do not see the file get rank 0's. Collective.

    Raises:
        UserError: as `read_whole`.
    """
    if not any_rank(not path.is_file(), session.device):
        return read_whole(path)
    payload: dict[str, Any] = broadcast_object(read_whole(path) if session.is_first else None, session.device)
    return payload


def numbered_checkpoints(folder: Path) -> list[Path]:
    """The numbered checkpoints of a folder, newest first, by number and not by name or date."""
    found = [(int(match[1]), path) for path in folder.glob("step_*.pt") if (match := _NUMBERED.match(path.name))]
    return [path for _, path in sorted(found, reverse=True)]


def newest_whole(folder: Path) -> tuple[Path, dict[str, Any]] | None:
    """The newest checkpoint that is whole, and its payload; each damaged one passed over is told in the log."""
    for path in numbered_checkpoints(folder):
        try:
            return path, read_whole(path)
        except UserError as error:
            log.warning("passing over %s: %s", path.name, error.why)
    return None


class CheckpointWriter:
    """Writes on a thread of its own; training waits only for the copy to the CPU, and for the previous write.

    Used on rank 0 alone. A write that fails for want of space is told and training goes on; the older ones stay.
    """

    def __init__(self, folder: Path, keep: int) -> None:
        self._folder = folder
        self._keep = keep
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None
        self.last_digest = ""
        self.write_s = 0.0
        """Seconds that writing took, beside training."""
        self.failed_writes = 0
        self._unwritten: dict[int, str] = {}
        """Steps whose checkpoint was left out, and why."""
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob("*.tmp"):
            leftover.unlink(missing_ok=True)

    def check_space(self, payload: dict[str, Any]) -> None:
        """Refuse to start where two checkpoints would not fit.

        Raises:
            UserError: C104 too little free space, C105 the folder cannot be written to.
        """
        size = 2 * (_bytes_of(payload) + 2**20)
        free = shutil.disk_usage(self._folder).free
        if free < size:
            raise UserError(
                "C104",
                f"{free / 2**20:,.0f} MiB free in {self._folder}",
                f"two checkpoints of this run take {size / 2**20:,.0f} MiB",
                "free some space, or write runs elsewhere with --runs-dir",
            )
        probe = self._folder / ".writable"
        try:
            probe.write_bytes(b"x")
            probe.unlink()
        except OSError as error:
            raise UserError(
                "C105",
                f"cannot write to {self._folder}",
                error.strerror or str(error),
                "choose another folder with --runs-dir",
            ) from error

    def save(self, payload: dict[str, Any], step: int, *, best: bool) -> None:
        """Take a copy now and write it behind training."""
        self.wait()
        self._pending = self._thread.submit(self._write, to_cpu(payload), step, best)

    def wait(self) -> None:
        """Until the write under way is done.

        Raises:
            UserError: C106 the file system refused it for another reason than space.
        """
        if self._pending is not None:
            self._pending.result()
            self._pending = None

    def refuse_unwritten(self, step: int) -> None:
        """A run whose last checkpoint was left out must not end as if its weights were safe.

        Raises:
            UserError: C109.
        """
        self.wait()
        if step in self._unwritten:
            raise UserError(
                "C109",
                f"the checkpoint of step {step}, the last, could not be written to {self._folder}",
                self._unwritten[step],
                "free some space, then the same command with --run-dir or --resume goes on from the one before",
                exit_code=ExitCode.CRASHED,
            )

    def close(self) -> None:
        """Finish the write under way."""
        try:
            self.wait()
        finally:
            self._thread.shutdown()

    def _write(self, payload: dict[str, Any], step: int, best: bool) -> None:
        started = time.perf_counter()
        path = self._folder / f"step_{step}.pt"
        # The digest is of the state, whether or not a disk takes it.
        self.last_digest = digest_of(payload)
        try:
            write_whole(path, payload, self.last_digest)
            _link(path, self._folder / "last.pt")
            if best:
                _link(path, self._folder / "best.pt")
            for old in numbered_checkpoints(self._folder)[self._keep :]:
                old.unlink(missing_ok=True)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                self.failed_writes += 1
                raise UserError(
                    "C106",
                    f"cannot write {path}",
                    error.strerror or str(error),
                    "mend the folder, then --resume auto",
                    exit_code=ExitCode.CRASHED,
                ) from error
            self._leave_out(step, error.strerror or str(error))
        except RuntimeError as error:
            # torch's zip writer reports a full disk as a RuntimeError of its own.
            self._leave_out(step, f"{str(error).splitlines()[0]}, {_free_mib(self._folder)} MiB free")
        finally:
            self.write_s += time.perf_counter() - started

    def _leave_out(self, step: int, why: str) -> None:
        self.failed_writes += 1
        self._unwritten[step] = why
        log.error("checkpoint of step %d not written: %s; the older ones are untouched, training goes on", step, why)


def _free_mib(folder: Path) -> int:
    return shutil.disk_usage(folder).free // 2**20


def _link(path: Path, alias: Path) -> None:
    """A second name for a file, replaced at once; a copy where the file system has no hard links."""
    temporary = alias.with_suffix(".link.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(path, temporary)
    except OSError:
        shutil.copyfile(path, temporary)
    temporary.rename(alias)
    _sync_folder(alias.parent)


def _sync_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # some network file systems refuse to sync a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _bytes_of(tree: Any) -> int:
    if isinstance(tree, Tensor):
        return tree.numel() * tree.element_size()
    if isinstance(tree, dict):
        return sum(_bytes_of(value) for value in tree.values())
    if isinstance(tree, (list, tuple)):
        return sum(_bytes_of(value) for value in tree)
    return 0
