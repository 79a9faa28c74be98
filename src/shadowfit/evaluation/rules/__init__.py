"""The rules behind the verdict on a fit: each looks at an estimate and says what a reader must know.

docs/verdict.md states them with their limits. To add one, write a function of an :class:`Estimate` into the file of its
subject and put it into ``RULES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shadowfit.estimation import Estimate
from shadowfit.evaluation.notices import Notice, ordered
from shadowfit.evaluation.rules.disagreement import pieces
from shadowfit.evaluation.rules.endings import digits, edges, ending
from shadowfit.evaluation.rules.followed_readings import levels, sensors, unlike_noise
from shadowfit.evaluation.rules.force_scale import known_forces
from shadowfit.evaluation.rules.missing_forces import forces
from shadowfit.evaluation.rules.possible_bodies import bodies, joints
from shadowfit.evaluation.rules.told_parameters import directions, pairs, parameters
from shadowfit.evaluation.rules.two_answers import answers

Rule = Callable[[Estimate], Iterator[Notice]]

RULES: tuple[Rule, ...] = (
    *(forces, known_forces, sensors, ending, digits, edges, levels, unlike_noise, pieces),
    *(parameters, answers, directions, pairs, bodies, joints),
)


def judge(estimate: Estimate) -> list[Notice]:
    """Everything that the rules have to say, the most serious first."""
    return ordered(notice for rule in RULES for notice in rule(estimate))
