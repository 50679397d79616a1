"""The packaged cross-encoder: its lessons, its training and its calibration."""
