"""`python -m torture`: all attacks, and a table of what came of them. Exit status 1 if anything went wrong."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from torture.children import import_everything
from torture.tally import Tally, report

KINDS = ("processes", "inputs", "hostile", "fits")


def main() -> int:
    """Attack, write the report as it grows, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument(
        "chosen", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}, or single attacks by their names; default: all"
    )
    parser.add_argument("--inputs", type=int, default=100_000, help="damaged and generated files")
    parser.add_argument("--fits", type=int, default=1000, help="fits on damaged data")
    parser.add_argument("--processes", type=int, default=60, help="kills, and bit flips in the cache")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("torture.md"), help="file of the report")
    chosen = parser.parse_args()
    tallies: list[Tally] = []
    began = time.monotonic()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="shadowfit-torture-") as name:
        attacks = _attacks(Path(name), chosen)
        single = {name: [attack] for kind in attacks.values() for name, attack in kind.items()}
        known = single | {kind: list(members.values()) for kind, members in attacks.items()}
        unknown = set(chosen.chosen) - set(known)
        if unknown:
            parser.error(f"there is no {', '.join(sorted(unknown))}; choose from {', '.join(known)}")
        for attack in (attack for word in chosen.chosen or KINDS for attack in known[word]):
            tallies.append(attack())
            chosen.out.write_text(report(tallies, time.monotonic() - began), "utf-8")
            print(tallies[-1], flush=True)
    return 1 if any(tally.failures for tally in tallies) else 0


def _attacks(folder: Path, chosen: argparse.Namespace) -> dict[str, dict[str, Callable[[], Tally]]]:
    """By kind and name. Processes first: they are forked, which must happen before anything is computed here."""
    inputs, number = chosen.inputs, chosen.seed
    import_everything()
    from torture import kills, processes  # noqa: PLC0415

    made: list[processes.Place] = []

    def place() -> processes.Place:
        if not made:
            (folder / "place").mkdir()
            made.append(processes.Place(folder / "place"))
        return made[0]

    def here(module: str, name: str, *arguments: object) -> Tally:
        logging.disable()
        found: Tally = getattr(__import__(f"torture.{module}", fromlist=[name]), name)(folder, *arguments)
        return found

    return {
        "processes": {
            "flips": lambda: processes.bit_flips(place(), chosen.processes, number),
            "kills": lambda: kills.kills(place(), 2 * chosen.processes, number),
            "begun": lambda: kills.begun(place(), chosen.processes // 2, number),
            "resumed": lambda: kills.resumed(place(), max(chosen.processes // 60, 1), number),
            "together": lambda: processes.together(place(), max(chosen.processes // 20, 1)),
            "threads": lambda: processes.threads(place()),
            "workers": lambda: processes.workers(place()),
            "disks": lambda: processes.disks(place(), (16, 64, 150, 260, 400, 1100, 2500)),
        },
        "inputs": {
            "recordings": lambda: here("reading", "damaged_recordings", int(0.6 * inputs), number),
            "tables": lambda: here("reading", "generated_recordings", int(0.2 * inputs), number),
            "models": lambda: here("reading", "damaged_models", int(0.1 * inputs), number),
            "texts": lambda: here("reading", "generated_models", int(0.1 * inputs), number),
        },
        "hostile": {
            "robots": lambda: here("hostile", "robots", max(inputs // 50, 1), number),
            "archives": lambda: here("hostile", "archives", max(inputs // 50, 1), number),
            "bags": lambda: here("hostile", "bags", max(inputs // 200, 1), number),
            "settings": lambda: here("hostile", "settings", max(inputs // 50, 1), number),
            "results": lambda: here("hostile", "results", max(inputs // 50, 1), number),
        },
        "fits": {
            "data": lambda: here("fits", "damaged_data", chosen.fits, number),
            "clocks": lambda: here("fits", "jumping_clocks", max(chosen.processes // 10, 1), number),
            "wrong": lambda: here("wrong_data", "wrong_data"),
        },
    }


if __name__ == "__main__":
    sys.exit(main())
