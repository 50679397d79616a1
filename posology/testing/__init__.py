"""Fakes that are real classes: for Posology's own tests and for those of its users."""

from posology.testing.switch import forbid_remote_providers

__all__ = ["forbid_remote_providers"]
