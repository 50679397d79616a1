"""``python -m evals.conflicts``: see :mod:`evals.conflicts.resolution`."""

from evals.conflicts.resolution import main

raise SystemExit(main())
