"""Runs of many calls that are paid for: each reply is kept, and a run that was interrupted goes on."""
