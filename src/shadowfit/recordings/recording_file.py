"""A recording that is named now and read later, perhaps by another machine."""

from __future__ import annotations

import math

from shadowfit.recordings.channel_table import ChannelTable
from shadowfit.recordings.read import read_recording
from shadowfit.recordings.recording import Recording
from shadowfit.records import record


@record(frozen=True)
class RecordingFile:
    """Where a recording is, and which part of it is meant."""

    path: str
    """As the machine that reads it sees it."""
    channels: ChannelTable | None = None
    begin: float = -math.inf
    """First time [s]."""
    end: float = math.inf
    """Last time [s]."""

    @property
    def name(self) -> str:
        """Its path."""
        return self.path

    def read(self) -> Recording:
        """The recording."""
        recording = read_recording(self.path, channels=self.channels)
        if math.isinf(self.begin) and math.isinf(self.end):
            return recording
        return recording.between(self.begin, self.end)
