"""``python -m orchestrator.training.artefacts.judge``."""

from __future__ import annotations

from orchestrator.training.artefacts.judge.training import main

if __name__ == "__main__":
    main()
