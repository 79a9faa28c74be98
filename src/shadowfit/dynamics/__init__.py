"""One time step, forwards and backwards, and simulations made of them."""

from shadowfit.dynamics.elements import Elements as Elements
from shadowfit.dynamics.elements import assemble as assemble
from shadowfit.dynamics.placement import place as place
from shadowfit.dynamics.simulate import Diagnostics as Diagnostics
from shadowfit.dynamics.simulate import Trajectory as Trajectory
from shadowfit.dynamics.simulate import rollout as rollout
from shadowfit.dynamics.simulate import rollouts as rollouts
from shadowfit.dynamics.simulate import simulate as simulate
from shadowfit.dynamics.state import State as State
