"""Small array programs as straight machine code: traced by JAX, unrolled to scalars, compiled by LLVM.

A time step of a mechanism is a few thousand operations on matrices of three rows, most of whose entries are known to
be zero. Unrolled to scalars and simplified, vectorised over time, and compiled as one loop, it runs several times
faster than batched operations on small arrays, and compiles faster as well.
"""

from shadowfit.kernels.batched import OverTime, by_xla, over_time
from shadowfit.kernels.errors import SlowerWarning, TooLargeError, UnsupportedError
from shadowfit.kernels.fingerprint import fingerprint
from shadowfit.kernels.kernel import Kernel, Workspace, kernel, making_seconds
from shadowfit.kernels.mapped import mapped
from shadowfit.kernels.own import is_own
from shadowfit.kernels.reach import reach
from shadowfit.kernels.slopes import slopes
from shadowfit.kernels.store import remembered
from shadowfit.kernels.windowed import windowed

__all__ = [
    "Kernel",
    "OverTime",
    "SlowerWarning",
    "TooLargeError",
    "UnsupportedError",
    "Workspace",
    "by_xla",
    "fingerprint",
    "is_own",
    "kernel",
    "making_seconds",
    "mapped",
    "over_time",
    "reach",
    "remembered",
    "slopes",
    "windowed",
]
