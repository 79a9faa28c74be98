"""docs/models.md: the examples are what they claim to be, and the reference lists every key with its unit."""

import re
from pathlib import Path

import pytest

from shadowfit.mechanism import Body, Compliance, Gravity, Inertia, Input, Joint, Wrench
from shadowfit.models import parse_model, read_model, vocabulary
from trees import same_trees

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text("utf-8")


def section(heading):
    """The text under a heading, down to the next one of the same or a higher level."""
    level = heading.split()[0]
    start = PAGE.index(f"{heading}\n") + len(heading)
    following = re.search(rf"^#{{1,{len(level)}}} ", PAGE[start:], re.MULTILINE)
    return PAGE[start : start + following.start()] if following else PAGE[start:]


def blocks(heading, language):
    found = re.findall(r"^```(\w*)\n(.*?)^```$", section(heading), re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


@pytest.mark.parametrize(
    ("heading", "name"), [("## A cart-pole, step by step", "cartpole"), ("## The Furuta pendulum", "furuta")]
)
def test_the_steps_make_the_built_in_model(heading, name):
    text = "\n".join(blocks(heading, "toml"))
    model = parse_model(text, "docs/models.md")
    assert same_trees(model.mechanism, read_model(name))
    assert model.start.positions


def test_the_extra_pieces_fit():
    cartpole = "\n".join(blocks("## A cart-pole, step by step", "toml"))
    stops = next(block for block in blocks("## A cart-pole, step by step", "") if "[contacts.stops]" in block)
    assert parse_model(f"{cartpole}\n{stops}").mechanism.get("stops.upper") == 0.4
    furuta = "\n".join(blocks("## The Furuta pendulum", "toml"))
    extras = next(block for block in blocks("## The Furuta pendulum", "") if "back_emf" in block)
    for replaced in (r"\[joints.hinge1.motor\][^\[]*", r"\[inputs.u\][^\[]*"):
        furuta = re.sub(replaced, "", furuta)
    assert parse_model(f"{furuta}\n{extras}").mechanism.get("hinge1.motor.resistance") == 8.4


REFERENCE = {
    "### `[gravity]`": [Gravity],
    "### `[bodies.NAME]`": [Body, Inertia],
    "### `[joints.NAME]`": [Joint, *vocabulary.JOINT_TYPES.values(), *vocabulary.FRICTION_LAWS.values()],
    "### `[joints.NAME.LAW]`": [*vocabulary.AXIS_LAWS.values()],
    "### `[contacts.NAME]`": [*vocabulary.CONTACTS.values(), *vocabulary.CONTACT_SHAPES.values()],
    "### `[forces.NAME]`": [Wrench],
    "### `[sensors.NAME]`": [*vocabulary.SENSORS.values()],
    "### `[inputs.NAME]`": [Input],
}


@pytest.mark.parametrize("heading", REFERENCE)
def test_every_key_is_listed_with_its_unit(heading):
    rows = [line for line in section(heading).splitlines() if line.startswith("|")]
    for part in REFERENCE[heading]:
        for key in vocabulary.keys(part):
            found = [row for row in rows if f"`{key.name}`" in row]
            assert found, f"{key.name} of {part.__name__}"
            unit = {"unit": "unit of the input", "rad": "rotation"}.get(key.unit, key.unit)
            unit = key.unit if key.kind == "number" and key.unit == "rad" else unit
            assert any(unit.replace(" | ", ", ") in row for row in found), f"{key.name} [{key.unit}]"
    for key in vocabulary.keys(Compliance):
        assert f"| `compliance.{key.name}` | {key.unit} |" in PAGE


def test_every_word_is_listed():
    words = (
        vocabulary.JOINT_TYPES,
        vocabulary.FRICTION_LAWS,
        vocabulary.AXIS_LAWS,
        vocabulary.CONTACTS,
        vocabulary.CONTACT_SHAPES,
        vocabulary.SENSORS,
    )
    reference = section("## Reference")
    assert all(f'`"{word}"`' in reference for group in words for word in group)
