"""Options of the form NAME=VALUE, and the options that several commands share."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shadowfit.errors import ShadowfitError

if TYPE_CHECKING:
    from shadowfit.estimation import Free
    from shadowfit.mechanism import Mechanism

# Headings under which `--help` lists options.
WISHED, MACHINE, DATA, METHOD, OUTPUT = "What to estimate", "Machine", "Recordings", "Method", "Output"

Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A built-in model, a model file (.toml) or a robot file (.urdf, .xml).")
]
Weld = Annotated[
    list[str] | None,
    typer.Option(
        "--weld",
        metavar="LINK",
        help="A floating link of a robot file that is held where it is.",
        rich_help_panel=MACHINE,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A number of the model, such as hinge1.viscous=1e-3. A rotation is a rotation vector x,y,z in rad or a "
        "quaternion w,x,y,z. May be repeated.",
        rich_help_panel=MACHINE,
    ),
]

Recordings = Annotated[
    list[Path],
    typer.Argument(metavar="RECORDING...", help="Recordings: CSV, NPZ, Parquet, HDF5 or MATLAB files, or ROS bags."),
]
Channels = Annotated[
    list[str] | None,
    typer.Option(
        "--channel",
        metavar="SENSOR=COLUMN",
        help="Column of a sensor or an input, where names differ; or the number of an input that is the same all the "
        "time, such as a servo's gain, one or one for each recording (kp=100,400). May be repeated.",
        rich_help_panel=DATA,
    ),
]
ChannelFile = Annotated[
    Path | None,
    typer.Option(
        "--channels",
        metavar="FILE",
        help="A TOML table of channels, with units, signs, offsets and delays.",
        rich_help_panel=DATA,
    ),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC",
        help="Topic of a bag; default: all with joint states. May be repeated.",
        rich_help_panel=DATA,
    ),
]
Begin = Annotated[
    float | None,
    typer.Option("--from", metavar="S", help="Use samples from this time on, in seconds.", rich_help_panel=DATA),
]
End = Annotated[
    float | None,
    typer.Option("--to", metavar="S", help="Use samples up to this time, in seconds.", rich_help_panel=DATA),
]
FreeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--free",
        metavar="NAME[=START][@LO:HI]",
        help="A parameter to estimate, or a pattern such as '*.inertia.*'. May be repeated; without any, only the "
        "motion is estimated.",
        rich_help_panel=WISHED,
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON object on standard output, and nothing else.", rich_help_panel=OUTPUT),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Use a result of which files were changed since the fit wrote them.", rich_help_panel=OUTPUT
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress and no warnings.", rich_help_panel=OUTPUT)]


class Discretization(enum.StrEnum):
    """The discrete equations of motion."""

    spook = "spook"
    exact = "exact"


class Joints(enum.StrEnum):
    """Joints of a simulation."""

    compliant = "compliant"
    rigid = "rigid"


class Residual(enum.StrEnum):
    """The dynamics residual of an estimation."""

    implicit = "implicit"
    inverse = "inverse"


class Unknowns(enum.StrEnum):
    """What stands for the states of a machine in an estimation."""

    configuration = "configuration"
    joint = "joint"
    full = "full"


class Correction(enum.StrEnum):
    """What is done about the errors of the discretisation."""

    none = "none"
    deferred = "deferred"


class Criterion(enum.StrEnum):
    """What a model is for."""

    auto = "auto"
    parameters = "parameters"
    simulate = "simulate"


class Intervals(enum.StrEnum):
    """What the error bars of parameters take the errors of the data to be."""

    robust = "robust"
    gauss_newton = "gauss-newton"
    residual = "residual"
    paper = "paper"


class OptionError(ShadowfitError):
    """An option that is not written as it should be."""


def assignments(texts: Iterable[str], option: str) -> dict[str, str]:
    """``["a=1", "b=2"]`` → ``{"a": "1", "b": "2"}``; a name that comes twice keeps its last value."""
    values = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value):
            raise OptionError(f"{option} {text}: write NAME=VALUE, without spaces around the equals sign")
        values[name] = value
    return values


def numbers(texts: Iterable[str], option: str) -> dict[str, float]:
    """``["hinge1=0.5"]`` → ``{"hinge1": 0.5}``."""
    return {name: _number(value, f"{option} {name}") for name, value in assignments(texts, option).items()}


def named_expressions(texts: Iterable[str]) -> dict[str, str]:
    """``["period=2 * pi", "arm.mass / 2"]`` → name → expression; one without a name is called as it is written."""
    expressions = {}
    for text in texts:
        name, equals, expression = (part.strip() for part in text.partition("="))
        expressions[name] = expression if equals else name
    return expressions


# What stands before the spread of an entropic prior.
ENTROPIC = "entropic:"


def free_parameters(
    texts: Iterable[str],
    mechanism: Mechanism,
    priors: Mapping[str, Free] | None = None,
    each: Iterable[str] = (),
) -> dict[str, Free]:
    """``["hinge*.viscous", "arm.mass=0.3@0.1:1"]`` → name → how it is estimated.

    ``priors`` and ``each`` name some of them, or patterns: with a prior, or with a value for each recording.
    """
    import dataclasses

    free = _requests(texts, mechanism)
    for pattern, known in (priors or {}).items():
        for name in _named_free(pattern, mechanism, free, "--prior"):
            free[name] = dataclasses.replace(free[name], prior=known.prior, entropic=known.entropic)
    for pattern in each:
        for name in _named_free(pattern, mechanism, free, "--each"):
            free[name] = dataclasses.replace(free[name], per_recording=True)
    return free


def known_beforehand(texts: Iterable[str], mechanism: Mechanism) -> dict[str, Free]:
    """``["arm.mass=0.1", "link*.inertial=entropic:30%"]`` → name or pattern → what is known.

    Per cent are those of a number's own size or, for the inertial numbers of a body, of its link's.
    """
    from shadowfit.estimation import Free
    from shadowfit.mechanism.natural_size import natural_size

    priors = {}
    for pattern, text in assignments(texts, "--prior").items():
        where = f"--prior {pattern}"
        spread = text.removeprefix(ENTROPIC)
        percent = spread.endswith("%")
        value = (0.01 if percent else 1.0) * _number(spread.removesuffix("%"), where)
        if text.startswith(ENTROPIC):
            priors[pattern] = Free(entropic=value)
        elif percent:
            priors |= {name: Free(prior=value * natural_size(mechanism, name)) for name in mechanism.expand(pattern)}
        else:
            priors[pattern] = Free(prior=value)
    return priors


def _named_free(pattern: str, mechanism: Mechanism, free: Mapping[str, Free], option: str) -> list[str]:
    """Free parameters of a name or pattern."""
    chosen = [name for name in mechanism.expand(pattern) if name in free]
    if not chosen:
        raise OptionError(f"{option} {pattern}: no parameter of this name is free; name it with --free as well")
    return chosen


def _requests(texts: Iterable[str], mechanism: Mechanism) -> dict[str, Free]:
    from shadowfit.estimation import Free

    free = {}
    for text in texts:
        named, at, box = (part.strip() for part in text.partition("@"))
        name, equals, start = (part.strip() for part in named.partition("="))
        where = f"--free {text}"
        lower, colon, upper = (part.strip() for part in box.partition(":"))
        if not name or (equals and not start) or (at and not (colon and (lower or upper))):
            raise OptionError(f"{where}: write NAME, NAME=START or NAME=START@LOWER:UPPER (one bound may be left out)")
        values = [_number(part, where) if part else None for part in (start, lower, upper)]
        for leaf in mechanism.expand(name):
            free[leaf] = Free(start=values[0], lower=values[1], upper=values[2])
    return free


def state_weight(text: str) -> float | Literal["auto"]:
    """The number of ``--state-weight``, or ``auto``."""
    if text == "auto":
        return "auto"
    value = _number(text, "--state-weight")
    if not value > 0.0:
        raise OptionError(f"--state-weight {text}: write a positive number (100 is usual), or auto")
    return value


# Components of the impulse on a body: forces along the world's axes, then moments.
COMPONENTS = ("x", "y", "z", "rx", "ry", "rz")


def impulse_variances(mechanism: Mechanism, texts: Iterable[str]) -> list[float] | None:
    """``["cart.x=1e3"]`` → variances of the impulses' errors, six for each body; one where nothing is said."""
    given = numbers(texts, "--impulse-variance")
    if not given:
        return None
    variances = {f"{body}.{component}": 1.0 for body in mechanism.bodies for component in COMPONENTS}
    for name, value in given.items():
        named = [key for key in variances if name in (key, key.partition(".")[0])]
        if not named:
            raise OptionError(
                f"--impulse-variance {name}: write BODY or BODY.COMPONENT, a component being one of "
                f"{', '.join(COMPONENTS)}"
            )
        variances.update(dict.fromkeys(named, value))
    return list(variances.values())


def apply_settings(mechanism: Mechanism, texts: Iterable[str], option: str = "--set") -> Mechanism:
    """The mechanism with the numbers of ``--set`` options."""
    values: dict[str, Any] = {}
    for name, value in assignments(texts, option).items():
        rotation = mechanism.leaf(name).kind == "rotation"
        values[name] = _rotation(value, f"{option} {name}") if rotation else _number(value, f"{option} {name}")
    return mechanism.set(values)


def _number(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise OptionError(f"{where}: {text!r} is not a number") from None


def _rotation(text: str, where: str) -> Any:
    import jax.numpy as jnp
    import numpy as np

    from shadowfit.geometry import rotations
    from shadowfit.models.notation import ROUGH

    values = np.array([_number(part, where) for part in text.split(",")])
    if values.size == 3:
        return np.asarray(rotations.exp(jnp.asarray(values)))
    if values.size != 4:
        raise OptionError(f"{where}: a rotation is three numbers (rotation vector) or four (quaternion), not {text!r}")
    length = np.linalg.norm(values)
    # Few digits are put right; a mechanism refuses what is further off.
    return values / length if abs(length - 1.0) < ROUGH else values
