"""Logs of the service: events as lines, their configuration, and the files of a local stack."""
