"""Many fits of one problem: bootstrap and profile likelihood."""
