"""How arrays of each kind of primitive become scalars: ``(unrolling, equation, arguments) → output(s)``."""
