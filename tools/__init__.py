"""Programs for those who work on shadowfit: pages of the documentation, other processors, other releases."""
