"""The six steps of the page, each a function that builds it from a desk."""
