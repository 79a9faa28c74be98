"""The paper's experiments from end to end: twins, fits, tables, figures, findings, and one page about all of it."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

from paper import (
    document,
    furuta,
    furuta_sweeps,
    initialisation,
    paper_twins,
    pendulum,
    synthetic,
    timing,
)
from paper.document import Finding, Results, ResultTable, Section
from paper.methods import Size
from shadowfit.errors import ShadowfitError
from shadowfit.models.atomic import write_text
from shadowfit.sweeps.cases import Case, Outcome, version
from shadowfit.sweeps.runner import Progress, run_cases

# A study is a module with ``twins(size)``, ``cases(size, twins)`` and ``report(results, size, folder of figures)``.
STUDIES: Mapping[str, tuple[ModuleType, ...]] = {
    "pendulum": (pendulum,),
    "furuta": (initialisation, furuta, furuta_sweeps, timing),
    "synthetic": (synthetic,),
}
TITLE = "Reproduction of the paper's experiments"

Stage = Callable[[int, str], AbstractContextManager[Progress | None]]
"""Makes the progress of a stage from its number of cases and its name."""


def reproduce(
    which: str, out: Path, *, size: Size, n_jobs: int | None, start: Callable[[], None] | None, stage: Stage
) -> list[Section]:
    """Run the studies of a name (or ``all``) and write their results; what a former run finished is kept.

    Computing time is measured at the end, with nothing else running. With recordings of a rig, what needs a truth is
    left out.
    """
    studies = [study for name, parts in STUDIES.items() if which in (name, "all") for study in parts]
    if size.rig is not None:
        studies = [study for study in studies if study in (pendulum, furuta)]
    paper_twins.write_models(out)
    made = _unique(case for study in studies for case in study.twins(size))
    if size.rig is not None:
        made = [size.rig.case(case) for case in made]
    twins = _run("recordings" if size.rig else "twins", made, out, n_jobs, start, stage)
    for outcome in twins.values():
        if not outcome.done:
            raise ShadowfitError(f"{outcome.case.name} could not be made: {outcome.error.strip()}")
    parallel = [case for study in studies if study is not timing for case in study.cases(size, twins)]
    outcomes = _run("fits", parallel, out, n_jobs, start, stage)
    if timing in studies:
        outcomes |= _run("timing", timing.cases(size, twins), out, 1, start, stage)
    figures = out / "figures"
    results = Results(outcomes)
    sections = [study.report(results, size, figures) for study in studies]
    write_results(sections, outcomes, out, size)
    return sections


def _unique(cases: Any) -> list[Case]:
    return list({case.name: case for case in cases}.values())


def _run(
    name: str, cases: Sequence[Case], out: Path, n_jobs: int | None, start: Callable[[], None] | None, stage: Stage
) -> dict[str, Outcome]:
    with stage(len(cases), name) as progress:
        return run_cases(cases, out, n_jobs=n_jobs, start=start, progress=progress)


def write_results(sections: Sequence[Section], outcomes: Mapping[str, Outcome], out: Path, size: Size) -> None:
    """``reproduction.md``, ``index.html``, ``results.json`` and ``tables/*.csv``."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    failed = [name for name, outcome in outcomes.items() if not outcome.done]
    note = (
        f"Written by `python -m paper` on {date}, version {version()}: {len(outcomes)} cases"
        + (f", of which failed: {', '.join(failed)}." if failed else ".")
        + (
            f" Recordings of a rig: {size.rig.folder.name}. "
            if size.rig
            else " The rig's data are not public; each study runs on a twin, a finer simulation whose truth is known. "
        )
        + "Findings are checked by the program on the numbers of this run."
    )
    everything = [_summary(sections), *sections]
    for section in sections:
        for table in section.tables:
            write_text(out / "tables" / f"{table.name}.csv", document.table_text(table))
    record = {
        "version": version(),
        "date": date,
        "failed": failed,
        "studies": [dataclasses.asdict(section) for section in sections],
    }
    write_text(out / "results.json", json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write_text(out / "reproduction.md", document.markdown(TITLE, note, everything))
    write_text(out / "index.html", document.html(TITLE, note, everything, out / "figures"))


def _summary(sections: Sequence[Section]) -> Section:
    findings = [finding for section in sections for finding in section.findings]
    rows = []
    for section in sections:
        counts = [sum(finding.holds is value for finding in section.findings) for value in (True, False, None)]
        rows.append([section.title, *map(str, counts)])
    table = ResultTable("", "Findings by study", ["study", "hold", "do not hold", "not checked"], rows)
    wrong = [f"{f.statement}: {f.evidence}{f' ({f.reason})' if f.reason else ''}" for f in findings if f.holds is False]
    text = [f"{sum(f.holds is True for f in findings)} of {len(findings)} findings hold."]
    if wrong:
        text += ["Those that do not hold on the twins:", "\n".join(f"- {line}" for line in wrong)]
    return Section("Summary", text, [table])


def unmet(sections: Sequence[Section]) -> list[Finding]:
    """Findings that do not hold or could not be checked."""
    return [finding for section in sections for finding in section.findings if finding.holds is not True]
