"""Formats in which providers export what was used: a module a provider, one for requests one by one."""
