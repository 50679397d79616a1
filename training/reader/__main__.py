"""``python -m training.reader``."""

from __future__ import annotations

from training.reader.training import main

if __name__ == "__main__":
    main()
