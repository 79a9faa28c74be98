"""A server of the page in a process of its own, as the command starts it."""

import contextlib
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from web.chromium import Chromium, executable


@contextlib.contextmanager
def served(folder, *options):
    """The address, with its token, of a page for a folder."""
    pytest.importorskip("nicegui", reason="the page needs the extra web")
    line = [sys.executable, "-m", "shadowfit", "web", str(folder), "--no-browser", *options]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:"), address
            yield address
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Folder of a project and the address of its page; uploads of at most a tenth of a megabyte."""
    folder = tmp_path_factory.mktemp("served") / "project"
    with served(folder, "--upload-limit", "0.1") as address:
        yield folder, address


@pytest.fixture
def browser(tmp_path):
    """A tab of a real browser, which must not complain."""
    if executable() is None:
        pytest.skip("no Chromium found: the page is not looked at in a browser (Debian: apt-get install chromium)")
    tab = Chromium(tmp_path / "browser")
    yield tab
    tab.close()
    assert tab.complaints == []


def root(address):
    """The address without its token."""
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}"
