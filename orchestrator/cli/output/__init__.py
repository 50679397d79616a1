"""Output of the commands: standard streams, options of a format, tables in a terminal, writing."""
