"""The short form of the attacks in `torture/`: no traceback, no hang, no wrong answer, nothing lost."""

import numpy as np
import pytest

from torture import fits, hostile, reading, wrong_data
from torture.mutation import mutated
from torture.tally import HangError, Tally, deadline, report


def sound(tally, tried):
    assert tally.tried >= tried
    assert tally.clean + tally.answers == tally.tried
    assert tally.failures == 0, report([tally], 0.0)


def test_damaged_recordings(tmp_path):
    tally = reading.damaged_recordings(tmp_path, 400, number=7)
    sound(tally, 400)
    assert tally.answers > 10, "some damage is none"


def test_generated_recordings(tmp_path):
    sound(reading.generated_recordings(tmp_path, 100, number=7), 50)


def test_damaged_models(tmp_path):
    sound(reading.damaged_models(tmp_path, 60, number=7), 60)


def test_generated_models(tmp_path):
    sound(reading.generated_models(tmp_path, 40, number=7), 20)


def test_hostile_robots(tmp_path):
    tally = hostile.robots(tmp_path, 40, number=7)
    sound(tally, 40)
    assert tally.answers > 2


def test_hostile_archives(tmp_path):
    tally = hostile.archives(tmp_path, 24, number=7)
    sound(tally, 24)
    assert tally.answers > 2


def test_hostile_bags(tmp_path):
    tally = hostile.bags(tmp_path, 6, number=7)
    sound(tally, 6)
    assert tally.answers > 0


def test_hostile_settings(tmp_path):
    tally = hostile.settings(tmp_path, 200, number=7)
    sound(tally, 200)
    assert tally.answers > 2


def test_tampered_results(tmp_path):
    sound(hostile.results(tmp_path, 14, number=7), 24)


def test_fits_on_damaged_data(tmp_path):
    sound(fits.damaged_data(tmp_path, 6, number=7), 6)


@pytest.mark.slow
def test_clocks_that_jump(tmp_path):
    sound(fits.jumping_clocks(tmp_path, 1), 1)


def test_a_sound_recording_ends_green(tmp_path):
    """Else nothing would be shown by others that do not."""
    assert wrong_data.colour(wrong_data.pendulum(), wrong_data.pendulum().recording, tmp_path / "sound") == "green"


# The quick form of the scoreboard has the mistakes with a Furuta pendulum.
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in wrong_data.machines() if name != "Furuta pendulum"])
def test_wrong_data_is_never_green(tmp_path, name):
    sound(wrong_data.wrong_data(tmp_path, (name,)), 5)


def test_damage_is_damage():
    random = np.random.default_rng(0)
    content = b"time,theta\n0,1\n1,2\n"
    changed = sum(mutated(content, random) != content for _ in range(200))
    assert changed > 150


def test_the_tally_tells_outcomes_apart():
    tally = Tally("test")

    def divide():
        return 1 / 0

    def sleep():
        while True:
            pass

    assert tally.attempt(lambda: 3, str) == 3
    tally.attempt(divide, str)
    tally.attempt(lambda: reading.read_recording("missing.csv"), str)
    assert (tally.tried, tally.answers, tally.tracebacks, tally.clean) == (3, 1, 1, 1)
    with pytest.raises(HangError), deadline(0.05):
        sleep()
    assert "| test | 3 | 1 | 1 | 1 | 0 | 0 | 0 |" in report([tally], 60.0)
