"""What makes the packaged files: codec, judge, preflight model, pruner, reader, roles, token weights, frequent words.

Each runs as ``python -m training.NAME --data DIR`` from a checkout; the wheel does not have them.
"""
