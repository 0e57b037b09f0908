"""Many files: find them, run them in parallel, write the results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from pathlib import Path

from unisono.errors import UserError
from unisono.migrate.findings import FileResult, Finding, FixKind, Options

SKIPPED_FOLDERS = {
    ".git", ".hg", ".svn", "__pycache__", ".venv", "venv", ".tox", ".nox", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache",
    ".ipynb_checkpoints", ".eggs", "site-packages",
}  # fmt: skip
PARALLEL_FROM_BYTES = 150_000
"""Below this much source one process is faster than starting several."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to look at. `relative` is its place under `--output`."""

    path: Path
    relative: Path
    python: bool


def gather(paths: Sequence[Path]) -> list[SourceFile]:
    """Python sources, scripts and configurations under the paths, each once, in order of name.

    Raises UserError G101 for a path that does not exist and G102 when there is no Python file.
    """
    from unisono.migrate.configs import is_config

    found: dict[Path, SourceFile] = {}
    for path in paths:
        if not path.exists():
            raise UserError(
                "G101", f"{path} does not exist", "migrate reads files and folders that are there", "check the path"
            )
        if path.is_file():
            python = path.suffix in (".py", ".pyi", ".pyw") or not is_config(path)
            found.setdefault(path.resolve(), SourceFile(path, Path(path.name), python))
            continue
        for folder, names, files in os.walk(path):
            names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS and not name.endswith(".egg-info"))
            for name in sorted(files):
                file = Path(folder) / name
                python = file.suffix in (".py", ".pyw")
                if (python or is_config(file)) and file.is_file():
                    found.setdefault(file.resolve(), SourceFile(file, file.relative_to(path), python))
    if not found:
        where = ", ".join(map(str, paths))
        raise UserError(
            "G102",
            f"no Python file under {where}",
            "there is nothing to migrate",
            "name a .py file or the folder that holds them",
        )
    return list(found.values())


def migrate_file(file: SourceFile, options: Options) -> FileResult:
    """Migrate one file. A file that cannot be read or parsed gives a finding M001, and stays as it is."""
    from unisono.migrate.configs import scan_text
    from unisono.migrate.engine import migrate_text
    from unisono.migrate.source import read_source

    name = str(file.path)
    try:
        if not file.python:
            with file.path.open(encoding="utf-8", newline="") as stream:
                return scan_text(stream.read(), options, name)
        text, encoding = read_source(file.path)
    except UnicodeDecodeError:
        return FileResult(name, "", "")  # not a text: nothing that could be scanned
    except (OSError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        finding = Finding(
            "M001",
            name,
            1,
            1,
            1,
            "",
            f"it cannot be read: {reason}",
            FixKind.MANUAL,
            "mend the file, then run migrate again",
        )
        return FileResult(name, "", "", (finding,), error=reason)
    result = replace(migrate_text(text, options, name), encoding=encoding)
    try:
        result.after.encode(encoding)
    except UnicodeEncodeError:
        return replace(result, encoding="utf-8")
    return result


def migrate_files(
    files: Sequence[SourceFile], options: Options, jobs: int, progress: Callable[[FileResult], None] | None = None
) -> list[FileResult]:
    """Results in the order of the files; `progress` is called for each one as it arrives."""
    results: list[FileResult] = []
    for result in _results(files, options, jobs):
        results.append(result)
        if progress is not None:
            progress(result)
    return results


def _results(files: Sequence[SourceFile], options: Options, jobs: int) -> Iterator[FileResult]:
    sizes = [file.path.stat().st_size if file.path.exists() else 0 for file in files]
    if jobs == 1 or len(files) == 1 or sum(sizes) < PARALLEL_FROM_BYTES:
        for file in files:
            yield migrate_file(file, options)
        return
    # Loaded before the fork, so that the workers share it.
    import unisono.migrate.engine  # noqa: F401  # for its side effect of being loaded

    pool = ProcessPoolExecutor(max_workers=min(jobs, len(files)))
    try:
        pending = [pool.submit(migrate_file, file, options) for file in files]
        for future in pending:
            yield future.result()
    except BrokenProcessPool as error:
        raise UserError(
            "G103", "a worker process died", "it was killed, most often for want of memory", "run again with --jobs 1"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def write_in_place(results: Iterable[FileResult]) -> int:
    """Write every changed file where it lies; the number of files written. Raises UserError G104."""
    from unisono.migrate.source import write_atomically

    written = 0
    for result in results:
        if not result.changed:
            continue
        try:
            write_atomically(Path(result.path), result.after, result.encoding)
        except OSError as error:
            raise _cannot_write(result.path, error) from error
        written += 1
    return written


def write_elsewhere(
    files: Sequence[SourceFile], results: Sequence[FileResult], folder: Path, roots: Sequence[Path]
) -> int:
    """Copy the trees to `folder` and put the changed files there; the number of files changed. Raises UserError G104, G105."""
    from unisono.migrate.source import write_atomically

    for root in roots:
        inside = root.resolve() if root.is_dir() else root.resolve().parent
        if folder.resolve() == inside or (root.is_dir() and folder.resolve().is_relative_to(inside)):
            raise UserError(
                "G105",
                f"{folder} lies in what is being migrated",
                "the result would be read as a source",
                "choose a folder outside, or --write",
            )
    changed = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for root in roots:
            if root.is_dir():
                shutil.copytree(
                    root,
                    folder,
                    dirs_exist_ok=True,
                    symlinks=True,
                    ignore=lambda _, names: SKIPPED_FOLDERS & set(names),
                )
        for file, result in zip(files, results, strict=True):
            target = folder / file.relative
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy2(file.path, target)
            if result.changed:
                write_atomically(target, result.after, result.encoding)
                changed += 1
    except OSError as error:
        raise _cannot_write(str(folder), error) from error
    return changed


def _cannot_write(path: str, error: OSError) -> UserError:
    return UserError(
        "G104",
        f"{path} cannot be written",
        str(error.strerror or error),
        "free the space or the permission, or use --output DIR",
    )
