"""Records are frozen dataclasses: they do what the standard library's do."""

import dataclasses
import pickle

import pytest

from shadowfit.records import record


def made(decorator):
    """The same classes by one decorator."""

    @decorator(frozen=True)
    class Base:
        one: int
        two: float = 2.0

    @decorator(frozen=True)
    class Point(Base):
        hidden: int = dataclasses.field(default=0, repr=False)
        ignored: list = dataclasses.field(default_factory=list, compare=False)

        def __post_init__(self):
            object.__setattr__(self, "two", 2 * self.two)

    @decorator(frozen=True, eq=False)
    class Own:
        one: int

        def __repr__(self):
            return "own"

    for cls in (Base, Point, Own):
        cls.__qualname__ = cls.__name__
    return Base, Point, Own


OURS, STANDARD = made(record), made(dataclasses.dataclass)


def outcome(act):
    """What a function gives, or the kind and words of what it raises."""
    try:
        return act()
    except Exception as error:  # whatever it is, it must be the same
        return type(error), str(error)


@pytest.mark.parametrize(
    "act",
    [
        lambda base, point, own: repr([base(1), point(1, 3.0, 4, [5]), own(1)]),
        lambda base, point, own: [base(1) == base(1), base(1) == base(2), base(1) == point(1), own(1) == own(1)],
        lambda base, point, own: [point(1, ignored=[1]) == point(1), point(1, hidden=1) == point(1), base(1) == 1],
        lambda base, point, own: [hash(base(1)), hash(point(1, 3.0, 4))],
        lambda base, point, own: setattr(base(1), "one", 2),
        lambda base, point, own: setattr(base(1), "new", 2),
        lambda base, point, own: delattr(point(1), "one"),
        lambda base, point, own: hash(base([])),
        lambda base, point, own: repr(dataclasses.replace(point(1), one=7)),
        lambda base, point, own: dataclasses.asdict(point(1, ignored=[1])),
        lambda base, point, own: [one.name for one in dataclasses.fields(point)],
        lambda base, point, own: [dataclasses.is_dataclass(cls) for cls in (base, point, own)],
        lambda base, point, own: point.__match_args__,
        lambda base, point, own: base.two,
    ],
)
def test_records_do_what_frozen_dataclasses_do(act):
    assert outcome(lambda: act(*OURS)) == outcome(lambda: act(*STANDARD))


def test_a_field_that_is_missing_is_named():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'one'"):
        OURS[0]()


@record(frozen=True)
class Kept:
    one: int


def test_records_can_be_kept_and_copied():
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1)
