"""Channels that a recording lacks, given as numbers on the command line."""

from pathlib import Path

import pytest

from shadowfit.cli.options import OptionError
from shadowfit.cli.recordings import Selection, read_recordings
from shadowfit.mechanism import Body, Input, JointPosition, Mechanism, Servo, hinge

SERVO = Servo(0.003, 0.4, 4.0, kp_input="gain")
MACHINE = Mechanism(
    {"arm": Body(0.5, (1e-4, 1e-4, 1e-4))},
    {"horn": hinge("world", "arm", laws={"servo": SERVO})},
    sensors={"q": JointPosition("horn")},
    inputs={"u": Input(), "gain": Input()},
)


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "first.csv", tmp_path / "second.csv"]
    for path in paths:
        path.write_text("time,q,u\n" + "".join(f"{0.01 * i:.2f},{0.1 * i:.1f},{0.2 * i:.1f}\n" for i in range(8)))
    return paths


@pytest.mark.parametrize(("text", "gains"), [("gain=400", [400.0, 400.0]), ("gain=100,800", [100.0, 800.0])])
def test_one_number_is_for_all_and_several_are_for_each(files: list[Path], text: str, gains: list[float]) -> None:
    measured = read_recordings(files, MACHINE, Selection([text]), quiet=True)
    assert [sorted(set(one.channels["gain"])) for one in measured] == [[gain] for gain in gains]


def test_another_count_is_refused(files: list[Path]) -> None:
    with pytest.raises(OptionError, match="3 numbers for 2 recordings"):
        read_recordings(files, MACHINE, Selection(["gain=1,2,3"]), quiet=True)
