"""What is to be estimated from what: options, parameters, recordings on their grids, weights, compiled rows."""
