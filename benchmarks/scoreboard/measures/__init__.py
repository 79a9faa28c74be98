"""What is measured of the outcomes: new measures need no new runs."""
