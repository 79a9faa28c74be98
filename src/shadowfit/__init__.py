"""Fit a rigid-multibody simulator to recordings by joint estimation of states and parameters."""
