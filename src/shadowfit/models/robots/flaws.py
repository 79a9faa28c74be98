"""Links whose inertia no body can have: told where that does no harm, else refused or replaced by the nearest possible.

What moves are bodies, of all links that fixed joints tie together. A body may be possible though a small link of it is
not, and links that are part of the world have no say in any motion.
"""

from __future__ import annotations

import dataclasses

from shadowfit.errors import MechanismError
from shadowfit.mechanism import WORLD
from shadowfit.mechanism.body import check_inertia
from shadowfit.models.robots.description import Description
from shadowfit.models.robots.lump import Lumped, lump


def made_possible(robot: Description, *, repair: bool) -> Description:
    """The robot with bodies that are all possible; with ``repair``, by the nearest possible inertias of their links.

    Raises:
        ModelFileError: a body is impossible, with the links that make it so and what would be possible.
    """
    flaws = {name: link.flaw for name, link in robot.links.items() if link.flaw is not None}
    if not flaws:
        return robot
    lumped = lump(robot)
    of = {name: lumped.places[name].body for name in flaws}
    harmful = [name for name, body in of.items() if body != WORLD and not _possible(lumped, body)]
    if harmful and not repair:
        first, *others = harmful
        listed = [f"{name!r} (line {robot.links[name].line})" for name in others]
        raise robot.error(flaws[first].refused(listed), robot.links[first].line)
    notes = [flaws[name].repaired for name in harmful]
    notes += [
        f"{flaws[name].why}; the body {body!r} that it is a part of is possible as a whole"
        for name, body in of.items()
        if body != WORLD and name not in harmful
    ]
    links = dict(robot.links)
    for name in harmful:
        link = links[name]
        assert link.mass is not None
        links[name] = dataclasses.replace(link, mass=dataclasses.replace(link.mass, inertia=flaws[name].nearest))
    return dataclasses.replace(robot, links=links, notes=(*robot.notes, *notes))


def _possible(lumped: Lumped, body: str) -> bool:
    try:
        check_inertia(lumped.masses[body].inertia, body)
    except MechanismError:
        return False
    return True
