"""``python -m shadowfit``: the command line."""

from shadowfit.cli import main

if __name__ == "__main__":
    main()
