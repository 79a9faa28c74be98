"""One case in this process: ``python -m benchmarks.scoreboard.worker CASE FILE``, CASE as JSON."""

from __future__ import annotations

import importlib
import logging
import sys
import warnings
from pathlib import Path

from benchmarks.scoreboard.case import Case
from benchmarks.scoreboard.outcomes import write


def main() -> None:
    """Run the case and keep what it found; an error is an outcome, too."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    case = Case.from_json(sys.argv[1])
    program = importlib.import_module(f"benchmarks.scoreboard.programs.{case.group}")
    try:
        found = program.run(case)
    except Exception as error:  # whatever goes wrong is what the board has to say
        found = {"error": f"{type(error).__name__}: {error}"[:300]}
    write(Path(sys.argv[2]), found)


if __name__ == "__main__":
    main()
