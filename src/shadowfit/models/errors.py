"""The error of model files."""

from __future__ import annotations

from shadowfit.errors import ShadowfitError


class ModelFileError(ShadowfitError):
    """A model file that cannot be read or written; the message opens with file and line.

    ``source`` names the file, ``line`` counts from 1 and is None where no line is to blame.
    """

    def __init__(self, message: str, source: str, line: int | None = None):
        super().__init__(f"{source}:{line}: {message}" if line is not None else f"{source}: {message}")
        self.source = source
        self.line = line
