"""Real machines: model files of ``studies/``, what is free there, and recordings of ``SHADOWFIT_DATA``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.rigs.rig import Rig
from shadowfit.mechanism import Mechanism
from shadowfit.models import load_model
from shadowfit.recordings import Recording, read_recording

STUDIES = Path(__file__).resolve().parents[2] / "studies"


def _rig(
    says: str,
    model: str,
    free: Sequence[str],
    fitted: tuple[str, ...],
    held_out: tuple[str, ...] = (),
    pairs: tuple[tuple[str, str, str], ...] = (),
    begin: float = -np.inf,
    end: float = np.inf,
    channels: Mapping[str, str] | None = None,
) -> Rig:
    """A rig whose model file is in ``studies/``, recorded between two times [s]."""

    def read(name: str) -> Recording:
        recording = read_recording(Path(os.environ["SHADOWFIT_DATA"]) / name, channels=dict(channels or {}))
        whole = not (np.isfinite(begin) or np.isfinite(end))
        return recording if whole else recording.between(begin, end)

    def mechanism() -> Mechanism:
        return load_model(str(STUDIES / model)).mechanism

    return Rig(says, mechanism, read, tuple(free), fitted, held_out, pairs, needs_data=True)


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
        "qube": _rig(
            "Quanser QUBE, rotary pendulum, chirps of the voltage",
            "qube.toml",
            qube.FREE,
            (_qube("pos", 0), _qube("neg", 0)),
            tuple(_qube(sign, i) for i in later for sign in signs),
            _pairs(_qube),
        ),
        "cartpole": _rig(
            "Quanser cart and pole, chirps of the voltage",
            "cartpole.toml",
            cartpole.FREE,
            (_cart("pos", 0), _cart("neg", 0)),
            tuple(_cart(sign, i) for i in later for sign in signs),
            _pairs(_cart),
            begin=cartpole.BEGIN,
            end=cartpole.END,
        ),
        "single": _rig(
            "pendulum that decays, friction with a Stribeck part",
            "single_pendulum.toml",
            single_pendulum.FREE,
            (swing,),
        ),
        "single-coulomb": _rig(
            "pendulum that decays, friction without a Stribeck part",
            "single_pendulum.toml",
            plain,
            (swing,),
        ),
        "double": _rig(
            "double pendulum in free swing, its first 20 s",
            "double_pendulum_uw.toml",
            double_pendulum_uw.FREE,
            (double,),
            end=20.0,
        ),
        "double-calm": _rig(
            "double pendulum in free swing, from 40 s on",
            "double_pendulum_uw.toml",
            double_pendulum_uw.FREE,
            (double,),
            begin=40.0,
        ),
        "dfki": _rig(
            "double pendulum with two motors in a position loop, torques read",
            "double_pendulum_dfki.toml",
            double_pendulum_dfki.FREE,
            driven,
            channels=double_pendulum_dfki.TORQUES,
            pairs=(("repeats", *driven),),
        ),
    }
