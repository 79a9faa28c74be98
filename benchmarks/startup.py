"""How long a user waits for answers that need no computation: medians over fresh processes, in seconds.

Target: ``--help`` and ``models`` below 0.5 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 7
PROGRAMS = {
    "python alone": [sys.executable, "-c", "pass"],
    "import shadowfit": [sys.executable, "-c", "import shadowfit"],
    "shadowfit --help": [sys.executable, "-m", "shadowfit", "--help"],
    "shadowfit models": [sys.executable, "-m", "shadowfit", "models"],
    "shadowfit show furuta": [sys.executable, "-m", "shadowfit", "show", "furuta"],
}


def seconds(program: list[str]) -> float:
    """Wall time of one run [s]."""
    begin = time.perf_counter()
    subprocess.run(program, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print the table."""
    print(f"{'program':24} {'median':>8} {'slowest':>8}")
    for name, program in PROGRAMS.items():
        times = [seconds(program) for _ in range(RUNS)]
        print(f"{name:24} {statistics.median(times):8.3f} {max(times):8.3f}")


if __name__ == "__main__":
    main()
