"""Recordings: reading, checking, filtering and resampling of measured data, all in SI units, on the host."""

from shadowfit.recordings.channel_table import Channel as Channel
from shadowfit.recordings.channel_table import ChannelTable as ChannelTable
from shadowfit.recordings.channel_table import read_channel_table as read_channel_table
from shadowfit.recordings.checks import check_recording as check_recording
from shadowfit.recordings.checks import clipped as clipped
from shadowfit.recordings.checks import looks_like_degrees as looks_like_degrees
from shadowfit.recordings.filtering import held_input_average as held_input_average
from shadowfit.recordings.filtering import held_input_hat as held_input_hat
from shadowfit.recordings.filtering import lowpass as lowpass
from shadowfit.recordings.filtering import resample as resample
from shadowfit.recordings.filtering import unwrap as unwrap
from shadowfit.recordings.grid import quantisation as quantisation
from shadowfit.recordings.grid import quantisation_std as quantisation_std
from shadowfit.recordings.headings import Heading as Heading
from shadowfit.recordings.headings import parse_heading as parse_heading
from shadowfit.recordings.read import read_recording as read_recording
from shadowfit.recordings.recording import Recording as Recording
from shadowfit.recordings.recording_file import RecordingFile as RecordingFile
from shadowfit.recordings.units import Unit as Unit
from shadowfit.recordings.units import parse_unit as parse_unit
