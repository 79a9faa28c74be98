"""docs/api.md lists what there is; ``make docs`` writes it anew from the source (``python -m tools.api_page``)."""

import shadowfit
from tools.api_page import PAGE, SECTIONS, page, sections


def test_the_page_has_every_name():
    """Each is in the source, with a sentence of its own, and on the page that lies in the repository."""
    written, now = PAGE.read_text("utf-8"), page()
    for name in (name for names in SECTIONS.values() for name in names):
        row = next(line for line in now.splitlines() if line.startswith("|") and f"`{name.rpartition('.')[2]}`" in line)
        assert len(row.split(" | ")[2]) > 10, row
        assert f"`{name.rpartition('.')[2]}`" in written, "run: python -m tools.api_page"
        assert f"::: shadowfit.{name}\n" in written, "run: python -m tools.api_page"


def test_all_public_names_are_in_some_section():
    listed = {name.rpartition(".")[2] for names in sections().values() for name in names}
    assert set(shadowfit.__all__) <= listed
