"""The scoreboard: run its cases, and compare what they say with the baseline.

    python -m benchmarks.scoreboard --quick              the quick form (minutes)
    python -m benchmarks.scoreboard                      the full one (hours; it can be stopped and continued)
    python -m benchmarks.scoreboard twins furuta-pulse --seeds 4      some scenarios, with every parameter
    python -m benchmarks.scoreboard --page               docs/scoreboard.md from the JSON alone

Ends with 1 where a metric is worse than its baseline by more than its tolerance. Rows of recordings say "no data" where
SHADOWFIT_DATA is not set. ``--record`` keeps the values in
results.json and writes the page; ``--baseline`` makes them the baseline: the commit says why.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from benchmarks.scoreboard import board, groups, outcomes, page
from benchmarks.scoreboard.case import Case, Form, Outcome
from benchmarks.scoreboard.table import table


def progress(total: int) -> outcomes.Told:
    """A line on standard error for each case."""
    done = 0

    def told(case: Case, found: Outcome) -> None:
        nonlocal done
        done += 1
        end = found.get("error") or found.get("verdict", "")
        print(f"[{done}/{total}] {case.name}: {end}", file=sys.stderr, flush=True)

    return told


def main() -> int:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("group", nargs="?", choices=groups.NAMES, help="one group only")
    parser.add_argument("scenarios", nargs="*", help="some of its scenarios")
    parser.add_argument("--quick", action="store_true", help="the quick form")
    parser.add_argument("--seeds", type=int, help="of twins; values are then printed without a baseline")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time")
    parser.add_argument("--folder", type=Path, default=outcomes.FOLDER, help="where outcomes are kept")
    parser.add_argument("--record", action="store_true", help="keep the values in results.json, write the page")
    parser.add_argument("--baseline", action="store_true", help="make them the baseline, too")
    parser.add_argument("--page", action="store_true", help="write the page, run nothing")
    given = parser.parse_intermixed_args()
    if given.page:
        page.write()
        return 0
    if given.seeds is not None and (given.record or given.baseline):
        parser.error("another number of seeds is not comparable; leave --seeds away")
    # Ended from outside as by the keyboard: with the cases that are running.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    form: Form = "quick" if given.quick else "full"
    began, now = time.perf_counter(), board.read(Path())
    chosen = [groups.group(name) for name in ([given.group] if given.group else groups.NAMES)]
    seeds = {} if given.seeds is None else {"seeds": given.seeds}
    data, left = bool(os.environ.get("SHADOWFIT_DATA")), list[str]()
    for group in chosen:
        known = group.words()
        if unknown := [name for name in given.scenarios if name not in known]:
            parser.error(f"{group.name} has no scenario {', '.join(unknown)}; it has {', '.join(known)}")
        cases = group.cases(form, given.scenarios, **(seeds if group.name == "twins" else {}))
        left += dict.fromkeys(f"{group.name}/{case.scenario}" for case in cases if case.needs_data and not data)
        cases = [case for case in cases if data or not case.needs_data]
        found = outcomes.run(cases, given.folder, given.jobs, progress(len(cases)))
        now = board.merged(now, board.measured(group, form, found))
        if given.scenarios and group.details is not None:
            for scenario, own in board.by_scenario(found).items():
                print(f"{group.name}/{scenario}", group.details(own), sep="\n")
    baseline = board.read(board.BASELINE) if given.seeds is None else board.read(Path())
    lines = list(board.compared(now, baseline, form))
    print(table(lines, left))
    beyond = sum(line.beyond for line in lines)
    print(f"{len(lines)} metrics, {beyond} beyond tolerance, {time.perf_counter() - began:.0f} s")
    if given.record or given.baseline:
        board.write(board.RESULTS, board.merged(board.read(board.RESULTS), now))
        if given.baseline:
            board.write(board.BASELINE, board.merged(board.read(board.BASELINE), now))
            print("The baseline has changed: say why in the message of the commit.")
        page.write()
    return 1 if beyond and not given.baseline else 0


if __name__ == "__main__":
    raise SystemExit(main())
