"""``python -m orchestrator.training.artefacts.reader``."""

from __future__ import annotations

from orchestrator.training.artefacts.reader.training import main

if __name__ == "__main__":
    main()
