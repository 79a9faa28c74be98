"""Programs that write pages of the documentation from the source."""
