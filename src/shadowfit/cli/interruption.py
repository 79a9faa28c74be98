"""Ctrl-C and SIGTERM during a fit: they end it at an iteration, and never while the result is being written."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import typer

# SIGTERM is how systems and job queues ask a program to end.
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# While the result is written: so many signals are answered with patience.
PATIENCE = 2
# Seconds until a signal is sent again that was lost.
AGAIN = 0.05


class Interruption:
    """A request to stop, which the fit's progress passes on."""

    def __init__(self) -> None:
        self.asked = False
        self.begun = False

    def progress(self, others: list[Callable[[Any], None]]) -> Callable[[Any], None]:
        """A function for ``fit(progress=...)``: calls others, then stops the fit if that was asked for."""

        def report(iteration: Any) -> None:
            self.begun = True
            for other in others:
                other(iteration)
            if self.asked:
                raise KeyboardInterrupt

        return report

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The first signal after the first iteration waits for the next one: every array is then whole."""
        del number, frame
        if self.asked or not self.begun:
            raise KeyboardInterrupt
        self.asked = True
        typer.echo("stopping after this iteration; the result is kept", err=True)


@contextlib.contextmanager
def interruptible() -> Iterator[Interruption]:
    """Signals end the fit inside the block in an orderly way."""
    interruption = Interruption()
    with _handled(interruption.handle):
        try:
            yield interruption
        except KeyboardInterrupt:
            what = "the last values are in unfinished.json" if interruption.begun else "there is no result"
            when = "twice" if interruption.begun else "before the first iteration"
            raise KeyboardInterrupt(f"interrupted {when}: {what}") from None


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals wait until the result is written; more than a few end the program all the same."""
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > PATIENCE:
            raise KeyboardInterrupt
        typer.echo("the result is being written; a moment", err=True)

    with _handled(handle):
        yield


def end_on_request() -> None:
    """SIGTERM ends a command as Ctrl-C does, with what is done kept and other processes ended."""
    with contextlib.suppress(ValueError):  # only the main thread may have handlers
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        sys.unraisablehook = _once_more


def _once_more(unraisable: sys.UnraisableHookArgs) -> None:
    """Send an interruption again that came while the interpreter cleaned up, where exceptions are lost."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        again = threading.Timer(AGAIN, os.kill, (os.getpid(), signal.SIGTERM))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)


@contextlib.contextmanager
def _handled(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may have handlers
        return
    before = [signal.signal(number, handler) for number in SIGNALS]
    try:
        yield
    finally:
        for number, old in zip(SIGNALS, before, strict=True):
            signal.signal(number, old)
