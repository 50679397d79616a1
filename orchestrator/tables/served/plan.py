"""The plan of a table: its request and its documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal

from pydantic import SecretStr, TypeAdapter

from orchestrator.models import Models
from orchestrator.settings import Settings
from orchestrator.tables.documents import Papers
from orchestrator.tables.run import Wanted
from orchestrator.tables.served.request import TableRequest
from orchestrator.training.paid.run import Terms


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A table's request, with every default filled in, and its documents as they stood in the index."""

    request: TableRequest
    papers: Papers

    @classmethod
    def read(cls, content: bytes) -> Plan:
        """Return the plan that :meth:`dump` wrote."""
        return _plan.validate_json(content)

    def dump(self) -> bytes:
        """Return the plan as JSON."""
        return _plan.dump_json(self)

    def digest(self) -> str:
        """Return the digest of everything but the maximum cost: plans of one digest are one table."""
        uncapped = self.request.model_copy(update={"max_cost_usd": None})
        parts = (uncapped.model_dump_json().encode(), _papers.dump_json(self.papers))
        return hashlib.sha256(b"\n".join(parts)).hexdigest()

    def wanted(self) -> Wanted:
        """Return the documents to read, and how."""
        return Wanted(papers=self.papers, reading=self.request.reading())

    def terms(
        self,
        tenant: str,
        *,
        cap: Decimal | None,
        settings: Settings,
        models: Models,
        redis: str,
    ) -> Terms:
        """Return who pays, from a ledger in Redis: without its address, a ledger would be in memory.

        Args:
            tenant: the tenant.
            cap: dollars for all calls; ``None``: the tenant's limits alone.
            settings: the configuration.
            models: judge what values and their quotes say.
            redis: address of the Redis with the tenant's ledger.
        """
        return Terms(
            tenant=tenant,
            cap=cap,
            settings=settings.model_copy(update={"redis_url": SecretStr(redis)}),
            models=models,
        )


_papers: TypeAdapter[Papers] = TypeAdapter(Papers)
_plan: TypeAdapter[Plan] = TypeAdapter(Plan)
