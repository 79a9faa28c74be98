"""The command line ``shadowfit``: parses and calls. One command per file; what they need is imported when they run."""

import os
import sys

from shadowfit.undisturbed import undisturbed


def main() -> None:
    """Run the command line and exit with its status.

    0 done, 1 stopped early, 2 wrong use or bad input, 3 the result is kept elsewhere, 130 interrupted.
    """
    try:
        with undisturbed():
            from shadowfit.cli.app import for_arguments
            from shadowfit.cli.interruption import end_on_request

            app = for_arguments(sys.argv[1:])
        end_on_request()
        # Read when the libraries load. Matrices here are small: threads would wait longer than they work.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        app(prog_name="shadowfit")
    except KeyboardInterrupt:  # before the command began, or after it ended
        print("interrupted", file=sys.stderr)
        sys.exit(130)
