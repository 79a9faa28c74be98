"""Threads that wait while machine code is made."""

import concurrent.futures

MODULES = 2
"""Modules that a large program is cut into; each is made by a process of its own."""
# One thread for each of them, and one for smaller programs meanwhile.
background = concurrent.futures.ThreadPoolExecutor(MODULES + 1, "kernels")
