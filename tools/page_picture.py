"""A small picture of a page, such as a report, by a headless Chromium: for the README and the documentation.

shadowfit demo --out demo
python -m tools.page_picture demo/report.html docs/figures/report.png
"""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

COLOURS = 200  # enough for lines and text, at a fraction of the size


def picture(page: Path, out: Path, size: tuple[int, int], width: int) -> None:
    """Write a picture of the top of a page, seen in a window of a size and shrunk to a width [pixels]."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("no Chromium found (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        flags = (
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"),
            *(f"--user-data-dir={folder}/profile", f"--window-size={size[0]},{size[1]}", f"--screenshot={shot}"),
        )
        subprocess.run([browser, *flags, page.resolve().as_uri()], check=True, capture_output=True, timeout=120)
        whole = Image.open(shot).convert("RGB")
        shrunk = whole.resize((width, whole.height * width // whole.width), Image.Resampling.LANCZOS)
        shrunk.quantize(COLOURS).save(out, optimize=True)


def main() -> None:
    """Parse and call."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--size", type=int, nargs=2, default=(1160, 1330), metavar=("W", "H"))
    parser.add_argument("--width", type=int, default=760)
    arguments = parser.parse_args()
    picture(arguments.page, arguments.out, tuple(arguments.size), arguments.width)


if __name__ == "__main__":
    main()
