"""``python -m training.roles``."""

from __future__ import annotations

from training.roles.training import main

if __name__ == "__main__":
    main()
