"""Attacks on the program: damaged input, damaged caches, kills, full disks. `make torture`; docs/torture.md."""
