"""``python -m evals.policy``: see :mod:`evals.policy.settings`."""

from evals.policy.settings import main

raise SystemExit(main())
