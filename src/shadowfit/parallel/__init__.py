"""Many pieces of work on one machine or many: joblib is the seam, Dask an engine behind it."""

from shadowfit.parallel.cluster import ClusterError as ClusterError
from shadowfit.parallel.cluster import Crew as Crew
from shadowfit.parallel.cluster import crew as crew
from shadowfit.parallel.run import Lost as Lost
from shadowfit.parallel.run import run as run
