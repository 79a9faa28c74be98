"""Linear algebra of a time step: block LDLᵀ, linear complementarity, and the two mixed. Knows no bodies."""

from shadowfit.complementarity import block_ldl as block_ldl
from shadowfit.complementarity import dense as dense
from shadowfit.complementarity.block_ldl import BlockStructureError as BlockStructureError
from shadowfit.complementarity.dense import DenseFactor as DenseFactor
from shadowfit.complementarity.lcp import LcpShapeError as LcpShapeError
from shadowfit.complementarity.lcp import LcpSolution as LcpSolution
from shadowfit.complementarity.lcp import solve_lcp as solve_lcp
from shadowfit.complementarity.mlcp import LinearSolver as LinearSolver
from shadowfit.complementarity.mlcp import MlcpSolution as MlcpSolution
from shadowfit.complementarity.mlcp import solve_mlcp as solve_mlcp
from shadowfit.complementarity.status import Status as Status
