"""The command line ``shadowfit``: parses and calls. One command per file; what they need is imported when they run."""

from shadowfit.cli.app import app


def main() -> None:
    """Run the command line and exit with its status: 0 done, 1 stopped early, 2 wrong use or bad input."""
    app(prog_name="shadowfit")
