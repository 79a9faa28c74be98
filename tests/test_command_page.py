"""docs/options.md has every option of every command; ``python -m tools.command_page`` writes it anew."""

from tools.command_page import PAGE, page


def test_the_page_has_every_option_in_its_words():
    written, now = (set(text.splitlines()) for text in (PAGE.read_text("utf-8"), page()))
    assert {line for line in now if line.startswith(("| `", "### "))} <= written, "run: python -m tools.command_page"
