"""Missing impulses of a tree of rigid joints by recursion: elements of each kind of link, and sweeps over the tree."""

from shadowfit.estimation.residuals.recursion.loop_rows import LoopRows as LoopRows
from shadowfit.estimation.residuals.recursion.rows import TreeRows as TreeRows
