"""Residuals of a time step and of a sample, with their derivatives: the rows of the least squares problem."""
