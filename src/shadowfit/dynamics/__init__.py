"""One time step, forwards and backwards, and simulations made of them."""

from shadowfit.dynamics.elements import Elements as Elements
from shadowfit.dynamics.elements import assemble as assemble
from shadowfit.dynamics.placement import place as place
from shadowfit.dynamics.rollout import rollout as rollout
from shadowfit.dynamics.rollout import rollouts as rollouts
from shadowfit.dynamics.simulate import simulate as simulate
from shadowfit.dynamics.simulate import simulate_many as simulate_many
from shadowfit.dynamics.state import State as State
from shadowfit.dynamics.trajectory import Diagnostics as Diagnostics
from shadowfit.dynamics.trajectory import Trajectory as Trajectory
