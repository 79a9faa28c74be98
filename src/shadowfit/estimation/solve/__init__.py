"""The objective, its minimisation by Levenberg–Marquardt, and the correction of discretisation errors."""
