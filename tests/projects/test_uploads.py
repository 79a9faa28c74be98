"""Uploaded files stay in the project's folder, whatever they are called, and are of known kinds and sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.projects.project import ProjectError
from shadowfit.projects.uploads import inside, keep, kept, plain_name


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("run.csv", "run.csv"),
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\data\\my run (2).csv", "my_run_2_.csv"),
        (".hidden.csv", "hidden.csv"),
        ("-rf.csv", "rf.csv"),
        ("mät\u200bt\n.csv", "mät_t_.csv"),
        ("<img src=x>.csv", "img_src_x_.csv"),
        ("a" * 300 + ".csv", "a" * 96 + ".csv"),
    ],
)
def test_names(name, plain):
    assert plain_name(name) == plain


@given(st.text())
def test_no_name_leaves_the_folder(name):
    try:
        plain = plain_name(name)
    except ProjectError:
        return
    assert not set(plain) & set("/\\<>&\"' \0\n")
    assert not plain.startswith((".", "-"))
    assert len(plain) <= 100
    assert plain_name(plain) == plain


def test_kept(tmp_path):
    assert keep(tmp_path, "recording", "../a b.csv", b"1", limit=1) == "data/a_b.csv"
    assert (tmp_path / "data" / "a_b.csv").read_bytes() == b"1"
    keep(tmp_path, "model", "rig.toml", b"", limit=1)
    assert kept(tmp_path, "recording") == ["data/a_b.csv"]
    assert kept(tmp_path, "model") == ["models/rig.toml"]


@pytest.mark.parametrize("name", ["a.html", "project", "..", "a.csv.sh", "///"])
def test_other_kinds_are_refused(name, tmp_path):
    with pytest.raises(ProjectError):
        keep(tmp_path, "recording", name, b"", limit=1)
    assert list(tmp_path.iterdir()) == []


def test_size_is_limited(tmp_path):
    with pytest.raises(ProjectError, match="2 MB are more than the 1 MB"):
        keep(tmp_path, "recording", "a.csv", bytes(2_000_000), limit=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("parts", [("..", "x"), ("/etc/passwd",), ("a", "../../x"), ("link", "x"), ("",)])
def test_paths_stay_inside(parts, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(tmp_path)
    with pytest.raises(ProjectError, match="not in the project"):
        inside(tmp_path / "own", *parts)
    assert inside(tmp_path / "own", "a", "b") == (tmp_path / "own" / "a" / "b").resolve()
