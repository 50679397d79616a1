"""Commands that make the packaged files: codec, pruner, preflight model, token weights, frequent words.

Each runs as ``python -m orchestrator.training.artefacts.NAME --data DIR``. Nothing imports them at run time.
"""
