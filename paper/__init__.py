"""The paper's studies on machines whose parameters are known, and on recordings of a rig: ``python -m paper``."""
