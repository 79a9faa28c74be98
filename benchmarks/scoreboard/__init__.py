"""The scoreboard: one list of measured numbers that says whether the library got better or worse."""
