"""Counting what attacks lead to."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from shadowfit.errors import ShadowfitError
from torture.patience import Stopwatch

LONGEST = 30.0  # s: an input that takes longer counts as hanging
BAD = ("tracebacks", "hangs", "wrong", "lost")


class HangError(BaseException):
    """An attempt took too long. No Exception, so that nothing takes it for an error of the input."""


@dataclasses.dataclass
class Tally:
    """Outcomes of one kind of attack."""

    name: str
    tried: int = 0
    clean: int = 0
    """Errors with a name and a message."""
    answers: int = 0
    tracebacks: int = 0
    hangs: int = 0
    wrong: int = 0
    """Answers that are not what they must be."""
    lost: int = 0
    """Results that were there before, or should be, and are not."""
    examples: list[str] = dataclasses.field(default_factory=list)
    """Of what went wrong."""

    @property
    def failures(self) -> int:
        """Of all kinds."""
        return sum(getattr(self, name) for name in BAD)

    def note(self, outcome: str, example: str = "") -> None:
        """Count an outcome; keep some examples of bad ones."""
        setattr(self, outcome, getattr(self, outcome) + 1)
        if outcome in BAD and len(self.examples) < 20:
            self.examples.append(f"{outcome}: {example}")

    def attempt(self, action: Callable[[], Any], what: Callable[[], str], longest: float = LONGEST) -> Any:
        """Run an attack in this process. Returns the answer, or None where there is none."""
        self.tried += 1
        try:
            with deadline(longest):
                answer = action()
        except ShadowfitError as error:
            short = 0 < len(str(error)) < 20_000
            self.note("clean" if short else "wrong", f"message of {len(str(error))} characters: {what()}")
            return None
        except HangError:
            self.note("hangs", what())
            return None
        except Exception:
            self.note("tracebacks", f"{what()}\n{traceback.format_exc(limit=-3)}")
            return None
        self.note("answers")
        return answer


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise in the block when the time is over, waiting for a processor not counted; in the main thread only."""
    watch = Stopwatch()

    def over(number: int, frame: Any) -> None:
        left = seconds - watch.passed()
        if left <= 0.0:
            raise HangError
        signal.setitimer(signal.ITIMER_REAL, left)

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def report(tallies: list[Tally], seconds: float) -> str:
    """A table in Markdown, and examples of what went wrong."""
    columns = ("tried", "clean", "answers", *BAD)
    lines = [f"{seconds / 60.0:.1f} minutes.", "", f"| attack | {' | '.join(columns)} |", "|---" * 8 + "|"]
    for tally in tallies:
        lines.append(f"| {tally.name} | {' | '.join(f'{getattr(tally, column):,}' for column in columns)} |")
    total = [f"{sum(getattr(tally, column) for tally in tallies):,}" for column in columns]
    lines.append(f"| **all** | {' | '.join(total)} |")
    for tally in tallies:
        lines += [f"\n{tally.name}:\n\n```\n{example}\n```" for example in tally.examples]
    return "\n".join(lines) + "\n"
