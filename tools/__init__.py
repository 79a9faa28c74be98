"""Programs for those who work on shadowfit: pages of the documentation, tests as on other processors."""
