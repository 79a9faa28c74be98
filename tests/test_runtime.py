"""Laws of how a program starts."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

AGAIN = """
import resource
import numpy as np
from shadowfit.runtime import keep_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

keep_memory()
np.ones(1 << 22)
before = faults()
for _ in range(10):
    np.ones(1 << 22)
print(faults() - before)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="another C library")
def test_memory_that_was_freed_is_not_asked_for_again():
    """Ten arrays of 32 MB after the first: none of their 80,000 pages comes from the system."""
    # Dask's workers give back what they can unless told otherwise.
    environment = os.environ | {"MALLOC_TRIM_THRESHOLD_": "65536"}
    run = subprocess.run([sys.executable, "-c", AGAIN], env=environment, capture_output=True, text=True, check=True)
    assert int(run.stdout) < 100
