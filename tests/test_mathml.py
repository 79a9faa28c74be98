"""Equations of the documentation can be typeset: what LaTeX the translator does not know is an error here already."""

import re
from pathlib import Path

import pytest

from tools.mathml import block

DOCS = Path(__file__).parents[1] / "docs"
EQUATIONS = [
    (page.name, source)
    for page in sorted(DOCS.rglob("*.md"))
    for source in re.findall(r"^```math\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize(("page", "source"), EQUATIONS)
def test_an_equation_is_typeset(page, source):
    assert "<math" in block(source, "math", "math", {}, None), page
