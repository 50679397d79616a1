"""The packaged judge of support: its lessons, its training and its calibration."""
