"""Decides from what clients, the provider and Redis saw whether a run kept every promise.

It imports nothing of the product: it knows the published JSON of the service and the documented entries of the ledger,
and works out everything else from the records of a run. :func:`check` is the entry.
"""

from __future__ import annotations

from evals.fire.checker.evidence import Finding, Kind, Run, load
from evals.fire.checker.verdict import Verdict, check

__all__ = ["Finding", "Kind", "Run", "Verdict", "check", "load"]
