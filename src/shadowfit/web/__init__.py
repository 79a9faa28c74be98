"""The local page of ``shadowfit web``: six steps around a project's folder. Needs the extra ``web`` (NiceGUI)."""
