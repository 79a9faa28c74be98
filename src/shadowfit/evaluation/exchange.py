"""Replacing the files of a folder in one step: whoever looks sees the old ones or the new ones; no failure loses both.

New files are written into a folder beside the old one, which then takes its name while the old one takes the other (one
operation of the file system, ``renameat2`` with ``RENAME_EXCHANGE``). Files that belong to somebody else come along.

Where folders cannot be exchanged (another operating system, a mount point, the working directory, a parent that may
not be written to) the files are moved one by one inside the folder: the old ones aside, the new ones in. Should a kill
come in between, :func:`recover` puts the old ones back.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from shadowfit.errors import WriteError

# Characters of the folder's name that the names of its helpers begin with: names may have 255 bytes.
NAME_LENGTH = 50

# Whether a name inside the folder is one of ours.
Owned = Callable[[str], bool]


@contextlib.contextmanager
def replacing(folder: str | os.PathLike[str], ours: Owned, last: str) -> Iterator[Path]:
    """An empty folder to write into, whose files replace the ``ours`` ones of ``folder`` when the block ends well.

    Args:
        folder: made if it does not exist.
        ours: tells which names belong to what is replaced; all others stay.
        last: the file whose presence says that the others are there too.

    Raises:
        WriteError: the file system refuses; the old files are untouched.
    """
    target = Path(folder).resolve()
    with _disk_errors_named(folder):
        beside = _may_be_renamed(target)
        (target.parent if beside else target).mkdir(parents=True, exist_ok=True)
        check_entries(target, ours)
        recover(target, ours, last)
        helpers = target.parent if beside else target
        fresh = helpers / f".{target.name[:NAME_LENGTH]}.{os.getpid()}.partial"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
    try:
        with _locked(fresh):
            yield fresh
            with _disk_errors_named(folder):
                if not target.exists():
                    fresh.rename(target)
                elif not (beside and _exchanged(fresh, target, ours)):
                    _move_one_by_one(fresh, target, ours, last)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def check_entries(target: Path, ours: Owned) -> None:
    """Raise if a folder stands where a file is to be: what is in it is not ours to remove.

    Raises:
        WriteError: there is one.
    """
    for entry in target.iterdir() if target.is_dir() else ():
        if ours(entry.name) and entry.is_dir():
            raise WriteError(f"{entry} is a folder, but a file of a result has this name; rename it")


def recover(target: Path, ours: Owned, last: str) -> None:
    """Tidy up after runs that were killed: whole old files come back, files of others too, the rest is removed."""
    for aside in _left_over(target, ".leaving"):
        _move(aside, target, sorted(os.listdir(aside)), last)
        _remove(aside)
    for aside in _left_over(target, ".previous"):
        if not (target / last).exists():
            for entry in _entries(target, ours):
                _remove(entry)
            _move(aside, target, sorted(os.listdir(aside)), last)
        _remove(aside)
    for folder in (target, target.parent):
        for left in _left_over(folder, ".partial", f".{target.name[:NAME_LENGTH]}."):
            if target.is_dir():
                _bring_others(left, target, ours)
            _remove(left)


def exchange(one: Path, other: Path) -> bool:
    """Give two folders each other's names, at once; False where the system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    here, there = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return bool(library.renamex_np(here, there, 2) == 0)  # RENAME_SWAP
    if sys.platform == "linux" and hasattr(library, "renameat2"):
        return bool(library.renameat2(-100, here, -100, there, 2) == 0)  # AT_FDCWD, RENAME_EXCHANGE
    return False


def _exchanged(fresh: Path, target: Path, ours: Owned) -> bool:
    """The folders exchanged, with what belongs to others in the new one; False if that is not possible."""
    for name in sorted(os.listdir(target)):
        if not ours(name) and not (target / name).is_dir():
            with contextlib.suppress(OSError):  # a file system without links: it is moved behind the exchange
                os.link(target / name, fresh / name, follow_symlinks=False)
    shutil.copymode(target, fresh)
    if not exchange(fresh, target):
        for entry in fresh.iterdir():
            if not ours(entry.name):
                entry.unlink()
        return False
    _bring_others(fresh, target, ours)
    return True


def _bring_others(old: Path, target: Path, ours: Owned) -> None:
    """Move what belongs to others from a folder that is about to be removed."""
    for name in sorted(os.listdir(old)):
        if not ours(name) and not os.path.lexists(target / name):
            os.rename(old / name, target / name)


def _move_one_by_one(fresh: Path, target: Path, ours: Owned, last: str) -> None:
    """Old files aside, new ones in; ``last`` goes first and comes last, so that no mixture is taken for a result.

    The name of the folder aside says how far it came: ``leaving`` until all old files are in it.
    """
    leaving, aside = (target / f".{os.getpid()}.{word}" for word in ("leaving", "previous"))
    old, new = [entry.name for entry in _entries(target, ours)], os.listdir(fresh)
    leaving.mkdir()
    with _locked(leaving):
        try:
            for name in sorted(old, key=lambda name: name != last):
                os.replace(target / name, leaving / name)
            leaving.rename(aside)
            _move(fresh, target, new, last)
        except OSError:
            for name in new:
                if (target / name).exists() and aside.exists():
                    os.rename(target / name, fresh / name)
            for folder in (leaving, aside):
                if folder.exists():
                    _move(folder, target, os.listdir(folder), last)
                    _remove(folder)
            raise
        _remove(aside)


def _move(source: Path, target: Path, names: list[str], last: str) -> None:
    for name in sorted(names, key=lambda name: name == last):
        os.replace(source / name, target / name)


def _entries(target: Path, ours: Owned) -> list[Path]:
    return [entry for entry in sorted(target.iterdir()) if ours(entry.name) and not entry.is_dir()]


def _may_be_renamed(target: Path) -> bool:
    """Whether a folder may change its name: not under a program's feet, and only where its parent allows it."""
    if not target.exists():
        return True
    here = Path.cwd()
    return not (os.path.ismount(target) or target == here or target in here.parents) and os.access(
        target.parent, os.W_OK | os.X_OK
    )


@contextlib.contextmanager
def _disk_errors_named(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the file system as errors that name the folder."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"{folder} cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold a folder's lock: it ends with the process, however that ends. Yields whether it was free."""
    try:
        import fcntl  # noqa: PLC0415  (not on every system)

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield False
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = True
        except OSError:
            free = False
        yield free
    finally:
        os.close(handle)


def _left_over(folder: Path, ending: str, beginning: str = ".") -> list[Path]:
    """Helper folders whose process is no more."""
    folders = []
    with contextlib.suppress(OSError):
        for entry in sorted(folder.iterdir()):
            if entry.name.startswith(beginning) and entry.name.endswith(ending) and entry.is_dir():
                with _locked(entry) as free:
                    folders += [entry] if free else []
    return folders


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry, ignore_errors=True)
    else:
        entry.unlink()
