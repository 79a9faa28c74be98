"""Stand-ins of machines whose models are wrong: each with its simulation, its model and an independent fit."""
