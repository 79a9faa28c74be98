"""What the residuals at the solution tell: noise levels, covariance, what is not identifiable."""
