"""The README's table of peers: what the scoreboard measured beside other programs, and nothing else."""

from __future__ import annotations

import re

from benchmarks.scoreboard import board
from benchmarks.scoreboard.board import Board
from benchmarks.scoreboard.outcomes import ROOT
from benchmarks.scoreboard.table import number

PATH = ROOT / "README.md"
PEERS = ("casadi-furuta", "mujoco-furuta", "mujoco-arm", "pinocchio-7")
BLOCK = re.compile(r"(<!-- peers, .*? -->\n).*?(<!-- end of peers -->)", re.DOTALL)


def table(results: Board) -> str:
    """A row for each comparison of the quick form; what is compared is told by the scenario itself."""
    rows = ["| processor time of | over | ratio |", "|---|---|---:|"]
    for name in PEERS:
        row = results["quick"]["speed"][name]
        what, _, peer = row["says"].partition(" over ")
        rows.append(f"| {what.rstrip(',')} | {peer} | {number(row['values']['ratio'])} |")
    return "\n".join(rows) + "\n"


def write() -> None:
    """Put the table of today's results into its place."""
    rows = table(board.read(board.RESULTS))
    PATH.write_text(BLOCK.sub(lambda found: found[1] + rows + found[2], PATH.read_text("utf-8")), "utf-8")
