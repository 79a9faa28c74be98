"""shadowfit and what its users would pick instead, on the same recordings: see ``run.py``."""
