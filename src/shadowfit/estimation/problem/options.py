"""Settings of the method, and whether they make sense."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np

from shadowfit.dynamics.discretization import Discretization
from shadowfit.dynamics.rigid_joints import describable, is_smooth
from shadowfit.errors import ShadowfitError, UnknownNameError, nearest
from shadowfit.estimation.problem.error_model import ErrorModel
from shadowfit.estimation.residuals import equations
from shadowfit.estimation.residuals.unknowns import KINDS, UnknownsName
from shadowfit.estimation.residuals.unknowns.interface import Unknowns
from shadowfit.magnitudes import LARGEST, SMALLEST, is_positive, is_usable
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.records import record

Correction = Literal["none", "deferred"]


class ProblemError(ShadowfitError):
    """An estimation problem that cannot be set up."""


@record(frozen=True)
class Options:
    """Settings of the method. The defaults are for the machine's own parameters, with error bars that hold.

    Chosen by measurement; docs/record/settings.md says why. What is ``auto`` is settled by the mechanism
    (:meth:`resolved`).
    """

    timestep: float | None = None
    """Time-step of the model [s]; None: the sampling interval, or a whole multiple of it of at most 10 ms, less for
    motions that swing faster than twice a second (48 steps for a period)."""
    residual: equations.Residual = "implicit"
    """Dynamics residual: ``implicit`` (mass times the error of the predicted velocity) or the paper's ``inverse``."""
    discretization: Discretization = "exact"
    """``exact`` for physical parameters, ``spook`` for those of a SPOOK simulator at this time-step."""
    unknowns: UnknownsName | Literal["auto"] = "auto"
    """``configuration`` (poses of the bodies; velocities enforced by the stepper), ``joint`` (joint coordinates:
    joints are rigid, whatever their compliance) or ``full`` (poses and velocities, the paper's); ``auto``: ``joint``
    wherever they describe the mechanism, else ``configuration``."""
    correction: Correction | Literal["auto"] = "auto"
    """``deferred``: errors of the discretisation, of second order in the time-step, are computed from the estimated
    motion and taken off the residuals (:mod:`truncation`); ``none``: parameters are those of the stepper at this
    time-step; ``auto``: ``deferred`` where the other settings allow it and no speeds jump (contacts, end stops)."""
    state_weight: float | Literal["auto"] = "auto"
    """κ: weight of the squared impulse residual relative to a squared reading of the reference standard deviation;
    ``auto`` estimates it and the sensors' noise from the data. The paper's is 100."""
    impulse_covariance: Sequence[float] | Sequence[Sequence[float]] | None = None
    """Ω: how the errors of the impulses [N s, N m s] are distributed over the six components of each body in turn, or
    over the joints' coordinates where these are the unknowns, as a symmetric positive matrix or its diagonal. Only its
    shape matters: the weight is κ Ω⁻¹ with Ω⁻¹ scaled to a mean diagonal of one. None: all alike."""
    errors: ErrorModel = ErrorModel()
    """Errors of forces and readings that are known, with any unknowns, and what the parameters are for; what is not
    given is estimated (``state_weight="auto"``) or follows from κ and the sensors' stated noise."""
    huber: float | None = None
    """Robust loss: residuals beyond this many standard deviations count linearly."""
    stick_time: float | Mapping[str, float] | Literal["half a step"] | None = "half a step"
    """Regularisation of sticking during the fit [s], for all joints or by their names (others then stick as the method
    has it); None: the mechanism's own. Dry friction fades at speeds that it
    would stop within this time. Less than half a step counts as that with deferred correction, whose finer steps take
    most of its effect off unless a time is given; without, too small a value makes the cost creep along the kinks of
    friction."""
    cutoff: float | None = None
    """Cut-off frequency [Hz] of the low-pass filter behind the initial trajectory; None: 10 Hz, or five times the
    frequency of faster swings."""
    memory: float | None = None
    """Most memory that the fit may use [bytes]; None: half of what is free. A larger problem is refused before it is
    built."""

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Options:
        """From the fields of a table or of JSON; what is not given has its default."""
        return cls(**{**fields, "errors": ErrorModel.of(fields.get("errors", {}))})

    @classmethod
    def physical(cls, mechanism: Mechanism, **changes: Any) -> Options:
        """The defaults as a mechanism settles them; ``changes`` are other fields."""
        return cls(**changes).resolved(mechanism)

    @classmethod
    def paper(cls, **changes: Any) -> Options:
        """The paper's method with its settings: SPOOK at 10 ms, poses and velocities, its residual, κ = 100.

        ``LevenbergMarquardt.paper()`` is its optimiser. ``changes`` are other fields.
        """
        chosen: dict[str, Any] = {
            "timestep": 0.01,
            "residual": "inverse",
            "discretization": "spook",
            "unknowns": "full",
            "correction": "none",
            "state_weight": 100.0,
        }
        return cls(**{**chosen, **changes})

    @property
    def kind(self) -> type[Unknowns]:
        """The kind of unknowns, where it is settled (:meth:`resolved`)."""
        assert self.unknowns != "auto", "build_problem settles what is left open"
        return KINDS[self.unknowns]

    def resolved(self, mechanism: Mechanism) -> Options:
        """The same with nothing left open but the noise levels: ``auto`` unknowns and correction as they suit."""
        physical = (self.residual, self.discretization) == ("implicit", "exact")
        unknowns = self.unknowns
        if unknowns == "auto":
            joint = physical and self.impulse_covariance is None and describable(mechanism)
            unknowns = "joint" if joint else "configuration"
        correction = self.correction
        if correction == "auto":
            correction = "deferred" if physical and unknowns != "full" and is_smooth(mechanism) else "none"
        return dataclasses.replace(self, unknowns=unknowns, correction=correction)


def check_options(options: Options) -> None:
    """Raise unless every setting has a value that the method knows."""
    choices = (
        ("residual", get_args(equations.Residual)),
        ("discretization", get_args(Discretization)),
        ("unknowns", tuple(KINDS)),
        ("correction", get_args(Correction)),
    )
    for name, allowed in choices:
        value = getattr(options, name)
        if value not in allowed:
            raise UnknownNameError(f"there is no {name} {value!r}{nearest(str(value), allowed)}")
    physical = (options.residual, options.discretization) == ("implicit", "exact")
    scope = options.kind.scope
    if options.correction != "none" and not (physical and scope.correction):
        kinds = " or ".join(repr(name) for name, kind in KINDS.items() if kind.scope.correction)
        raise ProblemError(
            f"the option correction {options.correction!r} needs the residual 'implicit', the discretization 'exact' "
            f"and the unknowns {kinds}"
        )
    if not (physical or scope.any_equations):
        raise ProblemError(
            f"the unknowns {options.unknowns!r} need the residual 'implicit' and the discretization 'exact'"
        )
    units = {"timestep": " s", "state_weight": "", "huber": "", "stick_time": " s", "cutoff": " Hz", "memory": " bytes"}
    for name, unit in units.items():
        value = getattr(options, name)
        if value is None or (name, value) in (("state_weight", "auto"), ("stick_time", "half a step")):
            continue
        for one in value.values() if name == "stick_time" and isinstance(value, Mapping) else (value,):
            if not (isinstance(one, int | float | np.number) and is_positive(one)):
                raise ProblemError(
                    f"the option {name} is {one}{unit}; it must be a positive number (from {SMALLEST:g} to {LARGEST:g})"
                )


def check_stick_time(options: Options, mechanism: Mechanism) -> None:
    """Raise unless the joints that creep longer are some with dry friction."""
    if not isinstance(options.stick_time, Mapping):
        return
    rubbing = [name for name, joint in mechanism.joints.items() if joint.friction is not None]
    for name in options.stick_time:
        if name not in rubbing:
            raise UnknownNameError(f"stick_time: no joint {name!r} has dry friction{nearest(name, rubbing)}")


def check_impulse_covariance(options: Options, mechanism: Mechanism, unknowns: Unknowns) -> None:
    """Raise unless Ω, if there is one, can be a covariance of the mechanism's impulses."""
    if options.impulse_covariance is None:
        return
    covariance, size = np.asarray(options.impulse_covariance, float), unknowns.impulses
    if covariance.shape not in ((size,), (size, size)):
        raise ProblemError(
            f"the option impulse_covariance has shape {covariance.shape}; for the unknowns {options.unknowns!r} of "
            f"{mechanism.name!r} it must be {size} variances or a matrix of {size} rows"
        )
    matrix = np.diag(covariance) if covariance.ndim == 1 else covariance
    usable = is_usable(matrix) and is_positive(np.diag(matrix))
    possible = usable and np.allclose(matrix, matrix.T) and np.linalg.eigvalsh(matrix)[0] > 0.0
    if not possible:
        raise ProblemError("the option impulse_covariance must be symmetric and positive definite")
