"""Posology beside other libraries."""
