"""The README's model file and command give the output that stands below them."""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shadowfit import load_model, simulate
from shadowfit.cli.app import app

TEXT = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
MODEL = re.search(r"```toml\n(.*?)```", TEXT, re.DOTALL)[1]
COMMAND, SHOWN = re.search(r"```\n\$ shadowfit (.*?)\n(.*?)```", TEXT, re.DOTALL).groups()
TRUTH = {"rod.inertia.yy": 0.0043, "hinge.viscous": 0.0004}
ROW = re.compile(r"^ (\S+) +(\S+) +(\S+) +(\S+) +(\S+ … \S+) +(\S.*?) *$", re.MULTILINE)
# What depends on the machine and on rounding.
EFFORT = re.compile(r"after \d+ iterations and [\d.]+ s")


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What the command prints for a rod with the numbers that the README tells."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "rod.toml").write_text(MODEL, "utf-8")
    model = load_model(folder / "rod.toml")
    rod = model.mechanism.set(TRUTH)
    start = model.start.with_joints({"hinge": 2.0}, {}).state(rod)
    run = simulate(rod, start, timestep=1e-3, steps=4000)
    angle = np.round(20.0 * np.degrees(np.asarray(run.readings["theta"])[::10])) / 20.0
    columns = np.stack([np.asarray(run.time)[::10], angle], axis=1)
    np.savetxt(folder / "run.csv", columns, delimiter=",", header="t [s],theta [deg]", comments="", fmt="%.2f")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(app, COMMAND.split(), env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    return done.stdout


def test_the_table_is_what_the_command_prints(printed):
    shown, rows = (ROW.findall(text) for text in (SHOWN, printed))
    assert [row[0] for row in shown] == [row[0] for row in rows] == list(TRUTH)
    for told, found in zip(shown, rows, strict=True):
        assert (told[1], told[5]) == (found[1], found[5])
        assert float(told[2]) == pytest.approx(float(found[2]), abs=0.1 * float(found[3]))
        assert float(told[3]) == pytest.approx(float(found[3]), rel=0.1)
        low, high = map(float, told[4].split(" … "))
        assert low <= TRUTH[told[0]] <= high


def test_the_verdict_is_what_the_command_prints(printed):
    assert "the columns `t [s]` and `theta [deg]`" in TEXT
    assert "0.0043 kg m² and whose\nfriction is 0.0004 N m s/rad" in TEXT
    told, found = (EFFORT.sub("", " ".join(text.split())) for text in (SHOWN, printed))
    assert told.partition("green ")[2] == found.partition("green ")[2] != ""
