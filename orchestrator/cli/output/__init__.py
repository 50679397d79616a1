"""Output of the commands: options of a format, tables in a terminal, writing."""
