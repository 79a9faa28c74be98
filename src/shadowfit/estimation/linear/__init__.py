"""Linear algebra of the fit: states eliminated in time order, the small system of the parameters, its box step."""
