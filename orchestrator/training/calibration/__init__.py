"""Calibration of preflight for an index, an embedder and an order of showing: cases, learning and figures."""
