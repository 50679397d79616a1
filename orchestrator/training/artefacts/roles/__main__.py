"""``python -m orchestrator.training.artefacts.roles``."""

from __future__ import annotations

from orchestrator.training.artefacts.roles.training import main

if __name__ == "__main__":
    main()
