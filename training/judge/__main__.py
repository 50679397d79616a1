"""``python -m training.judge``."""

from __future__ import annotations

from training.judge.training import main

if __name__ == "__main__":
    main()
