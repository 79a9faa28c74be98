"""Free parameters together: which named numbers are estimated, in what order, and where they may go.

Numbers live in boxes, rotations (a stand's tilt) on the rotation group, the ten inertial numbers of a body in the cone
of what a body can be (:mod:`whole_bodies`); the optimiser sees increments, one for a number and three for a rotation,
and :meth:`ParameterSet.plus` puts them back. A parameter marked ``per_recording``
has a value of its own in every recording.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from shadowfit.arrays import Array, Float
from shadowfit.estimation.linear.cone_step import Cones, joined
from shadowfit.estimation.problem import solids
from shadowfit.estimation.problem.parameter import Free, Parameter, ParameterError, checked
from shadowfit.estimation.problem.priors import entropic_information
from shadowfit.estimation.problem.solids import Solid
from shadowfit.estimation.problem.whole_bodies import NO_WHOLE_BODIES, WholeBodies
from shadowfit.estimation.residuals.parameter_layout import Values
from shadowfit.geometry import rotations
from shadowfit.kernels import mapped
from shadowfit.mechanism.mechanism import Mechanism
from shadowfit.mechanism.second_moments import ENTRIES
from shadowfit.records import record

# A body's, in the order of its moments.
INERTIAL_NUMBERS = ("mass", *(f"com.{axis}" for axis in "xyz"), *(f"inertia.{entry}" for entry in ENTRIES))
FreeParameters = str | Iterable[str] | Mapping[str, Free | float | None]


@record(frozen=True)
class Chart:
    """Coordinates of a step of the parameters from where they are."""

    tangent: Float[np.ndarray, "p p"] | None
    """Increments by these coordinates; None: they are the same."""
    scale: Float[np.ndarray, " p"]
    """Typical size of each."""
    sizes: Float[np.ndarray, " p"]
    """The same, or the present one where that is larger."""
    bounds: tuple[Float[np.ndarray, " p"], Float[np.ndarray, " p"]]
    """Smallest and largest steps."""
    cones: Cones
    """What a step must stay in for all bodies to be possible."""


@record(frozen=True)
class ParameterSet:
    """The free parameters of an estimation, in order."""

    parameters: tuple[Parameter, ...]
    recordings: int = 1
    solids: tuple[Solid, ...] = ()
    """Bodies with free moments of inertia."""
    whole: WholeBodies = NO_WHOLE_BODIES
    """Bodies all of whose inertial numbers are free, without bounds of the user's."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names, once each."""
        return tuple(parameter.name for parameter in self.parameters)

    @functools.cached_property
    def local_size(self) -> int:
        """Increments that one recording sees."""
        return sum(parameter.size for parameter in self.parameters)

    @functools.cached_property
    def size(self) -> int:
        """Increments of the whole problem."""
        return sum(p.size * copies for p, copies in self._counted())

    def places(self, recording: int) -> np.ndarray:
        """Places of a recording's increments among those of the whole problem."""
        first, stride = self._first_places
        return first + recording * stride

    @functools.cached_property
    def _first_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the first recording's increments, and how far those of the next one are from them."""
        first: list[int] = []
        stride: list[int] = []
        start = 0
        for parameter, copies in self._counted():
            first.extend(range(start, start + parameter.size))
            stride.extend([parameter.size if parameter.per_recording else 0] * parameter.size)
            start += copies * parameter.size
        return np.array(first, dtype=int), np.array(stride, dtype=int)

    def labels(self) -> list[str]:
        """A name for each increment: ``name``, ``name.x`` for rotations, ``name@i`` for the value in recording i."""
        labels: list[str] = []
        for parameter in self.parameters:
            copies = [f"@{i}" for i in range(self.recordings)] if parameter.per_recording else [""]
            parts = [".x", ".y", ".z"] if parameter.is_rotation else [""]
            labels.extend(f"{parameter.name}{part}{copy}" for copy in copies for part in parts)
        return labels

    @functools.cached_property
    def scales(self) -> Float[np.ndarray, " p"]:
        """Typical size behind each increment."""
        return self._of_each(lambda p: p.scale)

    @functools.cached_property
    def lower(self) -> Float[np.ndarray, " p"]:
        """Lower bound of the value behind each increment; rotations have none."""
        return self._of_each(lambda p: p.lower)

    @functools.cached_property
    def upper(self) -> Float[np.ndarray, " p"]:
        """Upper bound of the value behind each increment; rotations have none."""
        return self._of_each(lambda p: p.upper)

    def _of_each(self, value: Callable[[Parameter], float]) -> Float[np.ndarray, " p"]:
        """A property of each parameter for each increment, not to be written to."""
        entries = [value(p) for p, copies in self._counted() for _ in range(p.size * copies)]
        result = np.array(entries, dtype=float)
        result.flags.writeable = False
        return result

    def units(self) -> list[str]:
        """Unit of each increment."""
        return [p.unit for p, copies in self._counted() for _ in range(p.size * copies)]

    @functools.cached_property
    def _copies(self) -> list[int]:
        """Values of each parameter: one, or one for each recording."""
        return [self.recordings if p.per_recording else 1 for p in self.parameters]

    @functools.cached_property
    def _turning(self) -> np.ndarray:
        """Which increments belong to rotations."""
        return np.array([p.is_rotation for p, copies in self._counted() for _ in range(p.size * copies)], bool)

    def _counted(self) -> list[tuple[Parameter, int]]:
        return list(zip(self.parameters, self._copies, strict=True))

    def _seen(self, rotations: bool, recording: int) -> np.ndarray:
        """Which of all numbers, or of all rotations, a recording sees."""
        first, stride = self._first_rotations if rotations else self._first_numbers
        return first + recording * stride

    @functools.cached_property
    def _first_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Those that the first recording sees, and how far those of the next one are from them."""
        return self._first_of([(p, copies) for p, copies in self._counted() if not p.is_rotation])

    @functools.cached_property
    def _first_rotations(self) -> tuple[np.ndarray, np.ndarray]:
        """The same of rotations."""
        return self._first_of([(p, copies) for p, copies in self._counted() if p.is_rotation])

    @staticmethod
    def _first_of(counted: list[tuple[Parameter, int]]) -> tuple[np.ndarray, np.ndarray]:
        first = np.cumsum([0, *(copies for _, copies in counted)], dtype=int)[:-1]
        return first, np.array([p.per_recording for p, _ in counted], dtype=int)

    def start(self) -> Values:
        """Start values."""
        return self.of_names({p.name: p.start for p in self.parameters})

    def of_names(self, named: Mapping[str, Any]) -> Values:
        """Values by name, the same in all recordings: numbers, and quaternions for rotations."""
        numbers = [named[p.name] for p, copies in self._counted() for _ in range(copies) if not p.is_rotation]
        turns = [named[p.name] for p, copies in self._counted() for _ in range(copies) if p.is_rotation]
        return Values(np.array(numbers, float), np.array(turns, float).reshape(-1, 4))

    def with_numbers(self, values: Values, numbers: Mapping[str, float]) -> Values:
        """The values with other ones of some numbers, in all recordings."""
        names = [p.name for p, copies in self._counted() for _ in range(copies) if not p.is_rotation]
        changed = [numbers.get(name, value) for name, value in zip(names, values.numbers.tolist(), strict=True)]
        return Values(np.array(changed, float), values.turns)

    def plus(self, values: Values, increments: np.ndarray) -> Values:
        """``χ ⊞ δ``. Rotations turn in their own frame: the part of a tilt about gravity is then one component."""
        lower, upper = (bound[~self._turning] for bound in (self.lower, self.upper))
        # Adding and subtracting must not leave the box by rounding.
        numbers = np.clip(self.whole.moved(self.flat(values), increments)[~self._turning], lower, upper)
        turns = increments[self._turning].reshape(-1, 3)
        return Values(numbers, _turned(values.turns, turns) if len(turns) else values.turns)

    def minus(self, values: Values, other: Values) -> np.ndarray:
        """``χ ⊟ other``: the increments that take ``other`` to these values."""
        turns = _turned_by(values.turns, other.turns) if len(values.turns) else np.zeros(0)
        numbers = self.whole.between(self.flat(values), self.flat(other))
        return self._joined(numbers[~self._turning], turns)

    def bounds(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest increments that stay in the box."""
        flat = self.flat(values)
        return self.lower - flat, self.upper - flat

    def flat(self, values: Values) -> np.ndarray:
        """Value behind each increment; zero for rotations."""
        return self._joined(values.numbers, np.zeros(3 * len(values.turns)))

    def vector(self, values: Values) -> np.ndarray:
        """A number for each increment: values, and rotation vectors from the world's axes [rad]."""
        return self._joined(values.numbers, _rotation_vector(values.turns) if len(values.turns) else np.zeros(0))

    def of_vector(self, vector: np.ndarray) -> Values:
        """The values behind a number for each increment, as :meth:`vector` has them."""
        turns = vector[self._turning].reshape(-1, 3)
        quaternions = _turned(np.tile([1.0, 0.0, 0.0, 0.0], (len(turns), 1)), turns) if len(turns) else np.zeros((0, 4))
        return Values(vector[~self._turning], quaternions)

    @functools.cached_property
    def known(self) -> Float[np.ndarray, "p p"] | None:
        """Inverse covariance of the priors, for increments from the start; None without any."""
        if all(p.prior is None and p.entropic is None for p in self.parameters):
            return None
        matrix = np.diag(self._of_each(lambda p: 0.0 if p.prior is None else p.prior**-2.0))
        spreads = self._of_each(lambda p: np.inf if p.entropic is None else p.entropic)
        places = self.whole.places[np.all(np.isfinite(spreads[self.whole.places]), axis=1)]
        bodies = entropic_information(self.flat(self.start())[places]) / spreads[places[:, :1, None]] ** 2
        matrix[places[:, :, None], places[:, None, :]] += bodies
        return matrix

    @functools.cached_property
    def unknown_bodies(self) -> WholeBodies:
        """Bodies all of whose ten inertial numbers are free, without a prior of their own."""
        places = self.whole.places
        bare = self._of_each(lambda p: float(p.prior is None and p.entropic is None)) > 0.0
        return WholeBodies(places[np.all(bare[places], axis=1)])

    @functools.cached_property
    def file_information(self) -> Float[np.ndarray, "p p"]:
        """Inverse covariance of an entropic prior of spread one of these bodies about the model file's.

        As if they were as thick as long: files have rods and boxes where machines have motors and cables.
        """
        matrix, places = np.zeros((self.size, self.size)), self.unknown_bodies.places
        bodies = self.flat(self.start())[places]
        bodies[:, 4:7], bodies[:, 7:] = np.mean(bodies[:, 4:7], axis=1, keepdims=True), 0.0
        matrix[places[:, :, None], places[:, None, :]] = entropic_information(bodies)
        return matrix

    def information(self, file_spread: float) -> Float[np.ndarray, "p p"] | None:
        """Inverse covariance of all priors, where bodies are as far from the file's as the spread; None without any."""
        if not (len(self.unknown_bodies) and np.isfinite(file_spread)):
            return self.known
        of_file = self.file_information / file_spread**2
        return of_file if self.known is None else self.known + of_file

    def file_information_at(self, values: Values, file_spread: float) -> Float[np.ndarray, "p p"]:
        """The part of it that the file's bodies have, for increments at some values."""
        carried = self.from_start(values)[1]
        return carried.T @ self.file_information @ carried / file_spread**2

    def from_start(self, values: Values) -> tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]:
        """The increments that take the start to some values, and their derivative by increments there."""
        start = self.start()
        return self.minus(values, start), self.whole.carried(self.flat(values), self.flat(start))

    def cones(self, values: Values) -> Cones:
        """What increments from some values must stay in for all bodies to be possible (:mod:`solids`)."""
        return solids.cones(self.solids, self.flat(values))

    def chart(self, values: Values) -> Chart:
        """The coordinates in which a step from some values is found."""
        flat, scale = self.flat(values), self.scales.copy()
        sizes, bounds = np.maximum(scale, np.abs(flat)), self.bounds(values)
        if not len(self.whole):
            return Chart(None, scale, sizes, bounds, self.cones(values))
        start, places = self.flat(self.start()), self.whole.places
        scale[places], sizes[places] = self.whole.sizes(start), self.whole.sizes(flat)
        lower, upper = bounds
        lower[places[:, 1:]], upper[places[:, 1:]] = self.whole.limits(flat, start)
        apart = [solid for solid in self.solids if not set(places[:, 4:].ravel()).issuperset(solid.places)]
        cones = joined(solids.cones(apart, flat), self.whole.cones(flat))
        return Chart(self.whole.tangent(flat), scale, np.maximum(scale, sizes), (lower, upper), cones)

    def possible(self, values: Values) -> Values | None:
        """The nearest values with which all bodies are possible; None if bounds and held numbers allow none."""
        cones = self.cones(values)
        if cones.contain(np.zeros(self.size)):
            return values
        step = solids.step_inside(cones, self.scales, *self.bounds(values))
        return None if step is None else self.plus(values, step)

    def on_edge(self, values: Values) -> tuple[str, ...]:
        """Bodies on the edge of what a body can have: flat ones, with a principal second moment of zero."""
        return solids.on_edge(self.solids, self.flat(values))

    def followers(self, values: Values, recording: int = 0, seen_only: bool = False) -> dict[str, float]:
        """Numbers that are held, but give way to what is estimated, as one recording sees them (:mod:`solids`).

        ``seen_only``: those that the motion depends on.
        """
        flat, seen = self.flat(values), set(self.places(recording).tolist())
        changed: dict[str, float] = {}
        for solid in self.solids:
            seen_whole = seen.issuperset(place for place in solid.places if place is not None)
            if seen_whole and not (seen_only and solid.hidden):
                changed |= solids.followers(solid, flat)
        return changed

    def holding(self, numbers: Mapping[str, float]) -> ParameterSet:
        """The same parameters beside other values of numbers that are held."""
        moved = tuple(solids.with_entries(solid, numbers) for solid in self.solids)
        return dataclasses.replace(self, solids=moved)

    def _joined(self, numbers: Array, turns: np.ndarray) -> np.ndarray:
        """What belongs to numbers and what belongs to rotations, in the order of the increments."""
        joined = np.empty(self.size)
        joined[~self._turning], joined[self._turning] = numbers, turns.ravel()
        return joined

    def of_recording(self, values: Values, recording: int) -> Values:
        """The values that one recording sees."""
        return Values(values.numbers[self._seen(False, recording)], values.turns[self._seen(True, recording)])

    def named(self, values: Values, recording: int = 0) -> dict[str, Any]:
        """Values by name, as one recording sees them: floats, and quaternions for rotations."""
        local = self.of_recording(values, recording)
        numbers, turns = iter(local.numbers.tolist()), iter(local.turns)
        return {p.name: next(turns) if p.is_rotation else next(numbers) for p in self.parameters}


@mapped
def _turned(quaternion: Float[Array, "4"], increment: Float[Array, "3"]) -> Float[Array, "4"]:
    return rotations.normalise(rotations.plus_local(quaternion, increment))


@mapped
def _turned_by(quaternion: Float[Array, "4"], other: Float[Array, "4"]) -> Float[Array, "3"]:
    return rotations.log(rotations.multiply(rotations.conjugate(other), quaternion))


@mapped
def _rotation_vector(quaternion: Float[Array, "4"]) -> Float[Array, "3"]:
    return rotations.log(quaternion)


def parameter_set(mechanism: Mechanism, free: FreeParameters, recordings: int = 1) -> ParameterSet:
    """Resolve names and shell-style patterns to checked parameters.

    ``free`` is a name or lists names, or maps names to :class:`Free`, to a start value, or to None.
    """
    listed = [free] if isinstance(free, str) else free
    requests = dict(listed) if isinstance(listed, Mapping) else dict.fromkeys(listed)
    parameters: dict[str, Parameter] = {}
    known = mechanism.leaves()
    for pattern, request in requests.items():
        options = request if isinstance(request, Free) else Free(start=request)
        for name in mechanism.expand(pattern):
            parameters[name] = checked(mechanism, known.get(name) or mechanism.leaf(name), options)
    return with_solids(mechanism, ParameterSet(tuple(parameters.values()), recordings))


def with_solids(mechanism: Mechanism, parameters: ParameterSet) -> ParameterSet:
    """The parameters with the bodies whose moments of inertia are among them.

    Raises:
        ParameterError: no body has moments within the bounds beside those that are held.
    """
    labels = [parameter.name for parameter in parameters.parameters for _ in range(parameter.size)]
    places = [
        dict(zip(labels, parameters.places(recording).tolist(), strict=True))
        for recording in range(parameters.recordings)
    ]
    start = parameters.start()
    free = _with_whole_bodies(mechanism, parameters, places)
    whole = dataclasses.replace(free, solids=solids.solids(mechanism, places, free.flat(start)))
    if whole.possible(start) is None:
        bodies = ", ".join(dict.fromkeys(solid.body for solid in whole.solids if not solid.follows))
        raise ParameterError(
            f"no body has moments of inertia within these bounds ({bodies}): none may exceed the sum of the other two; "
            "widen the bounds, or free all six"
        )
    return whole


def _with_whole_bodies(
    mechanism: Mechanism, parameters: ParameterSet, places: Iterable[Mapping[str, int]]
) -> ParameterSet:
    """The parameters with the bodies all of whose inertial numbers are free and nowhere bounded by the user.

    Cones hold their inertias where bounds of single numbers would.
    """
    given = {parameter.name for parameter in parameters.parameters if parameter.bounds_given}
    bodies: dict[tuple[int, ...], str] = {}
    for numbers in places:
        for body in mechanism.bodies:
            names = [f"{body}.{number}" for number in INERTIAL_NUMBERS]
            if all(name in numbers for name in names) and given.isdisjoint(names[1:]):
                bodies[tuple(numbers[name] for name in names)] = body
    # A number that recordings share beside others of its body that they do not share has no moments of its own.
    times = Counter(place for row in bodies for place in row)
    alone = {row: body for row, body in bodies.items() if all(times[place] == 1 for place in row)}
    loose = {f"{body}.inertia.{entry}" for body in alone.values() for entry in ENTRIES}
    widened = tuple(
        dataclasses.replace(one, lower=0.0 if np.isfinite(one.lower) else one.lower, upper=np.inf)
        if one.name in loose
        else one
        for one in parameters.parameters
    )
    whole = WholeBodies(np.array(list(alone), int).reshape(-1, 10))
    _check_entropic(parameters, set(alone.values()))
    return dataclasses.replace(parameters, parameters=widened, whole=whole)


def _check_entropic(parameters: ParameterSet, whole: set[str]) -> None:
    """Raise where an entropic prior is not one of a whole body."""
    spreads: dict[str, set[float]] = {}
    for one in parameters.parameters:
        body = one.name.partition(".")[0]
        if one.entropic is not None and (body not in whole or one.prior is not None):
            raise ParameterError(
                f"the entropic prior of {one.name} needs a body all of whose inertial numbers are free, without bounds "
                f"and without other priors: --free '{body}.inertial' --prior '{body}.inertial=entropic:…'"
            )
        if body in whole and one.name.removeprefix(f"{body}.") in INERTIAL_NUMBERS:
            spreads.setdefault(body, set()).add(np.inf if one.entropic is None else one.entropic)
    uneven = [body for body, values in spreads.items() if len(values) > 1]
    if uneven:
        raise ParameterError(f"the entropic prior of {uneven[0]} must be the same for all of its inertial numbers")
