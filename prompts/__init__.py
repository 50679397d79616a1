"""Prompts: templates as files, one typed render function for each."""
