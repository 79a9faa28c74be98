"""A project: a folder with model, recordings and one file that says what to fit, and the runs made from it."""
