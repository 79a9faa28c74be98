"""Robot files: URDF and MJCF in, and calibrated values back into them."""
