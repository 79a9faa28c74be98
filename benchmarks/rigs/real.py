"""Real machines: model files of ``studies/``, what is free there, and recordings of ``SHADOWFIT_DATA``."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording

STUDIES = Path(__file__).resolve().parents[2] / "studies"


@dataclasses.dataclass(frozen=True)
class Rig:
    """A machine: its model file, what is free, and its recordings."""

    says: str
    model: str
    free: tuple[str, ...]
    fitted: tuple[str, ...]
    held_out: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    """Kind and two recordings whose fits should agree."""
    begin: float = -np.inf
    end: float = np.inf
    channels: tuple[tuple[str, str], ...] = ()

    def mechanism(self) -> Mechanism:
        """The model."""
        return load_model(str(STUDIES / self.model)).mechanism

    def read(self, name: str) -> Recording:
        """A recording, between the rig's times."""
        recording = read_recording(Path(os.environ["SHADOWFIT_DATA"]) / name, channels=dict(self.channels))
        whole = not (np.isfinite(self.begin) or np.isfinite(self.end))
        return recording if whole else recording.between(self.begin, self.end)


def _qube(sign: str, number: int) -> str:
    return f"furuta_qube2/qq_chirp_10to0Hz_{sign}1.5V_250Hz_10s_{number}.csv"


def _cart(sign: str, number: int) -> str:
    return f"cartpole_quanser/qcp_chirp_3to0Hz_{sign}3.5V_250Hz_{number}.csv"


def _pairs(name: Callable[[str, int], str]) -> tuple[tuple[str, str, str], ...]:
    repeats = [("repeats", name(sign, 1), name(sign, 2)) for sign in ("pos", "neg")]
    return (*repeats, ("signs", name("pos", 0), name("neg", 0)), ("signs", name("pos", 3), name("neg", 3)))


def rigs() -> dict[str, Rig]:
    """The rigs of the shared recordings."""
    sys.path.insert(0, str(STUDIES))
    import cartpole  # noqa: PLC0415
    import double_pendulum_dfki  # noqa: PLC0415
    import double_pendulum_uw  # noqa: PLC0415
    import qube  # noqa: PLC0415
    import single_pendulum  # noqa: PLC0415

    signs, later = ("pos", "neg"), (1, 2, 3, 4)
    swing, double = "pendulum_single_uw/single_free_swing_500Hz.csv", "pendulum_double_uw/double_free_swing_500Hz.csv"
    plain = tuple(name for name in single_pendulum.FREE if "stribeck" not in name)
    driven = tuple(f"double_pendulum_dfki/A0_traj{i}.csv" for i in ("00", "04"))
    return {
        "qube": Rig(
            "Quanser QUBE, rotary pendulum, chirps of the voltage",
            "qube.toml",
            tuple(qube.FREE),
            (_qube("pos", 0), _qube("neg", 0)),
            tuple(_qube(sign, i) for i in later for sign in signs),
            _pairs(_qube),
        ),
        "cartpole": Rig(
            "Quanser cart and pole, chirps of the voltage",
            "cartpole.toml",
            tuple(cartpole.FREE),
            (_cart("pos", 0), _cart("neg", 0)),
            tuple(_cart(sign, i) for i in later for sign in signs),
            _pairs(_cart),
            begin=cartpole.BEGIN,
            end=cartpole.END,
        ),
        "single": Rig(
            "pendulum that decays, friction with a Stribeck part",
            "single_pendulum.toml",
            tuple(single_pendulum.FREE),
            (swing,),
        ),
        "single-coulomb": Rig(
            "the same pendulum, friction without it",
            "single_pendulum.toml",
            plain,
            (swing,),
        ),
        "double": Rig(
            "double pendulum in free swing, its first 20 s",
            "double_pendulum_uw.toml",
            tuple(double_pendulum_uw.FREE),
            (double,),
            end=20.0,
        ),
        "double-calm": Rig(
            "the same double pendulum from 40 s on",
            "double_pendulum_uw.toml",
            tuple(double_pendulum_uw.FREE),
            (double,),
            begin=40.0,
        ),
        "dfki": Rig(
            "double pendulum with two motors in a position loop, torques read",
            "double_pendulum_dfki.toml",
            tuple(double_pendulum_dfki.FREE),
            driven,
            channels=tuple(double_pendulum_dfki.TORQUES.items()),
            pairs=(("repeats", *driven),),
        ),
    }
