"""Batches: many questions under one id, each a job of its own."""

from orchestrator.jobs.batches.batches import Batches
from orchestrator.jobs.batches.lines import MAX_ROWS, Lines
from orchestrator.jobs.batches.records import batch_id

__all__ = ["MAX_ROWS", "Batches", "Lines", "batch_id"]
