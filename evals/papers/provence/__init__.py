"""Provence's experiments on medical literature that the packaged pruner has not seen."""
