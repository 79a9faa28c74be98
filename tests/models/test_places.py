"""Places in TOML texts: what stands at a place is what was read from it, whatever the notation."""

import tomllib

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from shadowfit.models.catalogue import builtin_text, library
from shadowfit.models.errors import ModelFileError
from shadowfit.models.places import parse

ODD = '''# "quotes" and [brackets] in comments = nothing
title = "a # [b] \\" = c"
'single = quoted' . "two\\u0020words".x = 'C:\\path # no comment' # comment
long = """
[not a header]
key = "nothing" \\
"""""
raw = \'\'\'one 'two' # three\'\'\'
when = 1979-05-27 07:32:00Z
on = true
numbers = [ 1, # first, with a comma
   -2.5e-3,
   [3, { deep = [4, "]"] }], +inf, ]
empty = []
inline = { a = 1, b.c = "}" , "d e" = {} }

  [ spaced . "quoted.key" ]  # header
  indented = 0x1F
[spaced.other]
[[many]]
one = 1
'''


def look_up(values, path):
    for step in path:
        values = values[step]
    return values


def check_places(text):
    values, places = parse(text, "text")
    found = 0
    for path, place in places.items():
        written = text[place.start : place.stop]
        assert text.count("\n", 0, place.key) + 1 == place.line
        if path[0] == "many" or place.header == path:
            continue  # arrays of tables have no place of their own, and headers no value
        found += 1
        assert tomllib.loads(f"x = {written}")["x"] == look_up(values, path)
        if place.header is not None:
            assert path[: len(place.header)] == place.header
            key = text[place.key : place.start].rstrip().removesuffix("=")
            assert look_up(tomllib.loads(f"{key} = 1"), path[len(place.header) :]) == 1
    return values, places, found


def leaf_paths(values, path=()):
    if isinstance(values, dict | list):
        for step, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from leaf_paths(value, (*path, step))
    else:
        yield path


def test_every_notation_is_found():
    values, places, found = check_places(ODD)
    assert found > 20
    assert {path for path in leaf_paths(values) if path[0] != "many"} <= places.keys()
    assert places["spaced", "quoted.key"].line == ODD[: ODD.index("[ spaced")].count("\n") + 1
    assert places["numbers", 2, 1, "deep", 1].line == places["numbers", 2].line == places["numbers",].line + 2


def test_line_ends_of_other_systems():
    _, places, _ = check_places(ODD.replace("\n", "\r\n"))
    assert places["numbers", 1].line == check_places(ODD)[1]["numbers", 1].line


@pytest.mark.parametrize("name", sorted(set(library()) - {"chain4"}))
def test_built_in_files(name):
    text = builtin_text(name)
    values, places, _ = check_places(text)
    assert set(leaf_paths(values)) <= places.keys()


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.floats(allow_nan=False),
    st.integers(-(2**60), 2**60),
    st.booleans(),
    st.datetimes(),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
ARRAYS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
# No tables in arrays: written as [[table]], these have no place of their own.
VALUES = st.recursive(ARRAYS, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=8)


@given(st.dictionaries(KEYS.filter(lambda key: key != "many"), VALUES, max_size=5))
def test_places_of_any_document(values):
    text = tomlkit.dumps(values)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # the generator of texts is not perfect; that is not what is tested here
    check_places(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \n", 2), ("a = 1\na = 2\n", 2), ("[t]\n[t]\n", 2), ("x = [1,\n2", 2), ("\n\nx = 'open", 3)],
)
def test_broken_toml_names_the_line(text, line):
    with pytest.raises(ModelFileError, match=f"^rig.toml:{line}: not valid TOML: ") as caught:
        parse(text, "rig.toml")
    assert caught.value.line == line


def test_absurd_toml_is_refused():
    for text in ("x = " + "[" * 100_000, f"x = {'9' * 10_000}"):
        with pytest.raises(ModelFileError, match=r"^rig"):
            parse(text, "rig.toml")
