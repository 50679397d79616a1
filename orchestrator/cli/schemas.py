"""Schemas of what commands print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import BaseModel

from orchestrator.cli.index.forms import (
    IndexOutput,
    IngestOutput,
    ProspectOutput,
    SearchOutput,
    SyncOutput,
    VersionsOutput,
)
from orchestrator.cli.money.ledger_form import (
    ArchiveOutput,
    ExportOutput,
    LedgerOutput,
    RebuiltOutput,
)
from orchestrator.cli.money.reconcile_form import ReconcileOutput
from orchestrator.cli.money.tenants_form import TenantList, TenantOutput
from orchestrator.question.policy_forms import CompareOutput, ReplayOutput
from orchestrator.training.forms import (
    DatasetOutput,
    FinetuneOutput,
    LabelOutput,
    PromotionOutput,
    PrunerOutput,
    QTableOutput,
    TrainOutput,
)
from posology.published.answers import (
    AskOutput,
)
from posology.published.calls import ErrorOutput
from posology.published.estimates import EstimateOutput
from posology.published.jobs import BatchOutput, JobOutput, JobPage
from posology.published.money import SpendOutput

#: what ``posology schema`` prints, by name
SCHEMAS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "ask": AskOutput,
        "search": SearchOutput,
        "ingest": IngestOutput,
        "index": IndexOutput,
        "sync": SyncOutput,
        "prospect": ProspectOutput,
        "versions": VersionsOutput,
        "error": ErrorOutput,
        "job": JobOutput,
        "jobs": JobPage,
        "batch": BatchOutput,
        "estimate": EstimateOutput,
        "spend": SpendOutput,
        "ledger": LedgerOutput,
        "rebuild": RebuiltOutput,
        "export": ExportOutput,
        "archive": ArchiveOutput,
        "tenant": TenantOutput,
        "tenants": TenantList,
        "reconcile": ReconcileOutput,
        "qtable": QTableOutput,
        "promotion": PromotionOutput,
        "train": TrainOutput,
        "replay": ReplayOutput,
        "compare": CompareOutput,
        "dataset": DatasetOutput,
        "finetune": FinetuneOutput,
        "label": LabelOutput,
        "pruner": PrunerOutput,
    }
)
