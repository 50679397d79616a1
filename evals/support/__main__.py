"""``python -m evals.support``: see :mod:`evals.support.measure`."""

from evals.support.measure import main

raise SystemExit(main())
