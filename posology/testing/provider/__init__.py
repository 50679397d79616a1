"""Stub provider servers on loopback, with scripted replies and faults."""
