"""Many fits at once: grids over settings, and the paper's studies on machines whose parameters are known."""
