"""Files that come from a browser: names that stay inside the project's folder, known kinds, limited sizes."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from shadowfit.models.atomic import write_bytes
from shadowfit.projects.project import ProjectError

# Folder of each kind of file in a project, and the endings that it may have.
FOLDERS = {"model": "models", "recording": "data"}
ENDINGS = {
    "model": (".toml", ".urdf", ".xml"),
    "recording": (".csv", ".tsv", ".txt", ".npz", ".parquet", ".mat", ".h5", ".hdf5", ".bag", ".db3", ".mcap"),
}
NAME_LENGTH = 100
MEGABYTE = 10**6


def plain_name(name: str) -> str:
    """A name without folders, of letters, digits, ``_``, ``-`` and ``.``, which opens with none of the last two.

    Raises:
        ProjectError: nothing is left of it.
    """
    last = unicodedata.normalize("NFKC", name).replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, ending = re.sub(r"[^\w.-]+", "_", last).lstrip("._-").rpartition(".")
    stem, ending = (stem, ending) if dot else (ending, "")
    plain = stem[: NAME_LENGTH - len(dot + ending)] + dot + ending
    if not stem or len(plain) > NAME_LENGTH:
        raise ProjectError(f"a file cannot be called {name[:NAME_LENGTH]!r}; use letters, digits, _ and -")
    return plain


def keep(folder: Path, kind: str, name: str, content: bytes, limit: float) -> str:
    """Keep an uploaded file in the project's folder; its path there. One of the same name is replaced.

    Args:
        folder: of the project.
        kind: ``model`` or ``recording``.
        name: as the browser gave it.
        content: of the file.
        limit: largest size [MB].

    Raises:
        ProjectError: name, kind or size are not allowed.
    """
    plain = plain_name(name)
    if Path(plain).suffix.lower() not in ENDINGS[kind]:
        raise ProjectError(f"{plain}: a {kind}'s name ends in {', '.join(ENDINGS[kind])}")
    if len(content) > limit * MEGABYTE:
        raise ProjectError(f"{plain}: {len(content) / MEGABYTE:.0f} MB are more than the {limit:g} MB that are allowed")
    place = f"{FOLDERS[kind]}/{plain}"
    write_bytes(folder / place, content)
    return place


def kept(folder: Path, kind: str) -> list[str]:
    """Paths of a kind of file in the project's folder: uploaded, or put there by hand."""
    files_folder = folder / FOLDERS[kind]
    paths = files_folder.iterdir() if files_folder.is_dir() else ()
    return sorted(f"{FOLDERS[kind]}/{path.name}" for path in paths if path.suffix.lower() in ENDINGS[kind])


def inside(folder: Path, *parts: str) -> Path:
    """A path below a folder.

    Raises:
        ProjectError: it leaves the folder, by its words or by a link.
    """
    root = folder.resolve()
    path = root.joinpath(*parts).resolve()
    if root not in path.parents:
        raise ProjectError(f"{'/'.join(parts)[:NAME_LENGTH]!r} is not in the project's folder")
    return path
