"""Commands that set Posology up: configuration, keys, and a check of this machine."""
