"""Templates of the user's own, as configured."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import Settings
from prompts.template import load_own


def configured(settings: Settings) -> str | None:
    """Return the digest of the configured templates, and load them; ``None``: the packaged ones. Blocking.

    Raises:
        BadFile: the folder or a template cannot be read or used.
    """
    return None if settings.prompts is None else load_own(Path(settings.prompts).absolute())
