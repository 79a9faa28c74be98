"""The notebooks of the gallery run, draw their machine, and find what they set out to find."""

import re

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from tools.gallery import GALLERY, Cell, cells, names, run

mpl.use("Agg")


def test_cells_of_words_and_of_python():
    text = "# %% [markdown]\n# # Title\n#\n# words\n\n# %%\nx = 1  # one\n"
    assert cells(text) == [Cell(True, "# Title\n\nwords"), Cell(False, "x = 1  # one")]


def test_all_are_in_the_menu_of_the_site():
    menu = (GALLERY.parents[1] / "mkdocs.yml").read_text("utf-8")
    assert set(names()) == set(re.findall(r"gallery/(\w+)\.md", menu))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:recording .* lies on a grid")
@pytest.mark.parametrize("name", names())
def test_a_notebook_finds_its_truth(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = {"__name__": name}
    pictures = [picture for _, ran in run(name, space) for picture in ran.pictures]
    assert any(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pyplot.get_fignums() == []
    estimate, truth = space["estimate"], space["truth"]
    assert estimate.verdict != "red"
    rows = {row.name: row for row in estimate.parameters}
    for label, value in truth.items():
        row = rows[label]
        assert abs(row.value - value) < 4.0 * row.std, label
        assert row.std < 0.5 * np.abs(value), label
    if name == "randomisation":
        assert space["up"]["draws"] > space["up"]["calibrated"]
