"""Running cases, resumable: what is finished is a file, whatever becomes of the rest."""

from __future__ import annotations

import collections
import contextlib
import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from shadowfit.errors import ShadowfitError, WriteError
from shadowfit.parallel import Lost, run
from shadowfit.sweeps import cases as records
from shadowfit.sweeps.cases import Case, Outcome

Progress = Callable[[Outcome, bool], None]
"""Called with each outcome, and whether it was found from an earlier run."""


def run_cases(
    cases: Sequence[Case],
    folder: Path,
    *,
    n_jobs: int | None = 1,
    start: Callable[[], None] | None = None,
    progress: Progress | None = None,
) -> dict[str, Outcome]:
    """Outcome of each case, by name; those that a former run finished are taken from their files.

    Args:
        cases: what to do; names must differ.
        folder: of the study; files of cases go to its subfolder ``cases``.
        n_jobs: number of processes, as joblib has it; 1 runs the cases in this process. Inside a configuration of
            joblib for a cluster, cases run there.
        start: called once in every process, to set it up.
        progress: called after each case.
    """
    _check_names(cases)
    records.tidy(folder)
    report = progress or (lambda outcome, kept: None)
    outcomes: dict[str, Outcome] = {}
    for case in cases:
        kept = records.load(case, folder)
        if kept is not None:
            outcomes[case.name] = kept
            report(kept, True)
    # Cases of a group run the same compiled programs: one after the other, so that the first ones make them.
    pending = _by_group([case for case in cases if case.name not in outcomes])
    with contextlib.closing(run(_performed, pending, shared=(folder.absolute(), start), n_jobs=n_jobs)) as finished:
        for place, result in finished:
            outcome = Outcome(pending[place], None, result.reason, 0.0) if isinstance(result, Lost) else result
            _keep(outcome, folder)
            outcomes[outcome.case.name] = outcome
            report(outcome, False)
    return {case.name: outcomes[case.name] for case in cases}


def _performed(case: Case, folder: Path, start: Callable[[], None] | None) -> Outcome:
    """Run a case where it is; its file is written there, so that it does not depend on the driver's life."""
    if start is not None:
        _started(start)
    outcome = records.attempt(case, folder)
    # A worker elsewhere may have no such folder.
    with contextlib.suppress(WriteError):
        records.store(outcome, folder)
    return outcome


@functools.cache
def _started(start: Callable[[], None]) -> None:
    start()


def _keep(outcome: Outcome, folder: Path) -> None:
    """Write the file of a case unless its worker has."""
    if records.load(outcome.case, folder) is None:
        records.store(outcome, folder)


def _check_names(cases: Iterable[Case]) -> None:
    twice = [name for name, count in collections.Counter(case.name.lower() for case in cases).items() if count > 1]
    if twice:
        raise ShadowfitError(f"two cases have the name {twice[0]!r}, and one file cannot hold both; rename one")


def _by_group(cases: Sequence[Case]) -> list[Case]:
    first = {group: i for i, group in reversed(list(enumerate(case.group for case in cases)))}
    return sorted(cases, key=lambda case: first[case.group])
