"""Rotations, poses, and the operators plus (⊞) and minus (⊟) on them. No physics."""

from shadowfit.geometry.pose import Pose as Pose
