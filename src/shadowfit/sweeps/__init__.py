"""Many fits at once: resumable cases, and grids over settings."""
