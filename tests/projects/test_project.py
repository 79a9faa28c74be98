"""Project files: read as written, refused with the key that is wrong, and the command lines that they stand for."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from shadowfit.cli.app import app
from shadowfit.cli.options import free_parameters
from shadowfit.models import read_model
from shadowfit.projects import commands
from shadowfit.projects.project import FreeNumber, Part, Project, ProjectError, read_project, write_project

WHOLE = Project(
    model="models/rig.toml",
    weld=("base",),
    channels="channels.toml",
    out="found",
    fit=Part(("data/a.csv", "data/b.csv"), 0.5, 4.0),
    validation=Part(("data/c.csv",)),
    free={"hinge*.viscous": FreeNumber(), "arm.mass": FreeNumber(0.3, 0.1, 1.0, 0.02, True)},
    settings={"hinge1.coulomb": 1e-4},
    options={"huber": 3.0, "paper": True, "quiet": False, "force-noise": ["hinge1=0.1", "hinge2=0.2"]},
)
numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("project", [Project(), WHOLE])
def test_read_as_written(project, tmp_path):
    write_project(tmp_path / "project.toml", project)
    assert read_project(tmp_path / "project.toml") == project


@given(numbers, numbers, numbers, st.booleans(), st.text(st.characters(codec="utf-8", exclude_categories=["C"])))
def test_any_number_and_name_survives(tmp_path_factory, start, lower, prior, each, name):
    path = tmp_path_factory.mktemp("project") / "project.toml"
    project = Project(model=name, free={name: FreeNumber(start, lower, None, prior, each)})
    write_project(path, project)
    assert read_project(path) == project


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modle = 'furuta'", "'modle'; did you mean 'model'"),
        ("model = 3", "model: 3 is not a text"),
        ("fit = 1", "write a table"),
        ("[fit]\nform = 1", "'form' in fit; did you mean 'from'"),
        ("[fit]\nfrom = 'x'", "fit.from: 'x' is not a number"),
        ("[free]\n'a.b' = 3", "free.a.b: write"),
        ("[free]\n'a.b' = { begin = 3 }", "there is no key 'begin' in free.a.b"),
        ("[set]\n'a' = nan", "set.a: nan is not a number"),
        ("[options]\na = { b = 1 }", "options.a: write"),
        ("[", "project.toml"),
    ],
)
def test_mistakes_are_named(text, message, tmp_path):
    (tmp_path / "project.toml").write_text(text)
    with pytest.raises(ProjectError) as caught:
        read_project(tmp_path / "project.toml")
    assert message in str(caught.value)


def test_command_lines():
    common = "--set hinge1.coulomb=0.0001 --weld base --channels channels.toml --from 0.5 --to 4.0"
    asked = f"models/rig.toml data/a.csv data/b.csv --free 'hinge*.viscous' --free arm.mass=0.3@0.1:1.0 {common}"
    more = "--prior arm.mass=0.02 --each arm.mass --huber 3.0 --paper --force-noise hinge1=0.1 --force-noise hinge2=0.2"
    assert commands.shown(commands.check(WHOLE)) == f"shadowfit check {asked} --out check.html"
    assert commands.shown(commands.fit(WHOLE)) == f"shadowfit fit {asked} {more} --out found"
    assert commands.validate(WHOLE) == shlex.split("validate found data/c.csv --channels channels.toml")


def test_the_command_line_understands_what_is_free():
    """The option made of a free number reads as that number."""
    for own in (FreeNumber(), FreeNumber(1e-3), FreeNumber(0.2, 0.1), FreeNumber(None, None, 3e5), FreeNumber(1, 0, 2)):
        text = commands._free("pendulum.mass", own)
        read = free_parameters([text], read_model("furuta"))["pendulum.mass"]
        assert (read.start, read.lower, read.upper) == (own.start, own.lower, own.upper)


@pytest.mark.parametrize("command", [commands.show, commands.check, commands.fit, commands.validate])
def test_what_is_missing_is_said(command):
    with pytest.raises(ProjectError, match="the project has no"):
        command(Project())


def test_run_prints_and_runs_the_command(tmp_path):
    write_project(tmp_path / "project.toml", Project(model="pendulum", settings={"hinge.viscous": 0.0123}))
    dry = CliRunner().invoke(app, ["run", str(tmp_path), "show", "--dry-run"])
    assert dry.stdout == "shadowfit show pendulum --set hinge.viscous=0.0123\n"
    whole = CliRunner().invoke(app, ["run", str(tmp_path / "project.toml"), "show"])
    assert whole.exit_code == 0, whole.output
    assert "0.0123" in whole.stdout
    assert "shadowfit show pendulum" in whole.stderr


def test_run_speaks_of_mistakes_once(tmp_path):
    write_project(tmp_path / "project.toml", Project(model="pendulum"))
    result = CliRunner().invoke(app, ["run", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr == "error: the project has no recording to fit yet\n"
    write_project(tmp_path / "project.toml", Project(model="pendulum", settings={"hinge.nothing": 1.0}))
    result = CliRunner().invoke(app, ["run", str(tmp_path), "show"])
    assert result.exit_code == 2
    assert result.stderr.count("error:") == 1
