"""Schemas of what commands print with ``--json``."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from orchestrator.cli.common import errors
from orchestrator.cli.index.forms import (
    IndexOutput,
    IngestOutput,
    NoticesOutput,
    ProspectOutput,
    SyncOutput,
    UpgradeOutput,
    VersionsOutput,
)
from orchestrator.cli.models.forms import ModelCheck, ModelList, ModelOutput
from orchestrator.cli.money.tenants_form import TenantList, TenantOutput
from orchestrator.cli.setup.forms import ConfigOutput, DoctorOutput
from orchestrator.evaluation.forms import EvalOutput, EvalRow
from orchestrator.question.decisions.forms import CompareOutput, ReplayOutput
from orchestrator.screening.forms import ScreeningOutput
from orchestrator.training.calibration.forms import CalibratedOutput, CalibrationOutput
from orchestrator.training.forms import (
    DatasetOutput,
    FinetuneOutput,
    LabelOutput,
    PromotionOutput,
    PrunerOutput,
    QTableOutput,
    TrainOutput,
)
from posology.budget.books.form import (
    ArchiveOutput,
    ExportOutput,
    LedgerOutput,
    MirrorOutput,
    RebuiltOutput,
    SettledOutput,
)
from posology.budget.reconcile.report import ReconcileOutput
from posology.published.affected import AffectedPage
from posology.published.answers import AskOutput, PassageOutput
from posology.published.calls import ErrorOutput
from posology.published.estimates import EstimateOutput
from posology.published.ingests import FetchOutput
from posology.published.jobs import BatchOutput, BatchPage, JobOutput, JobPage
from posology.published.literature import IndexStatus, QuoteSearch, SearchOutput
from posology.published.money import SpendOutput
from posology.published.tables.forms import TableOutput
from posology.published.watches.forms import WatchList, WatchOutput
from posology.published.webhooks.endpoints import (
    WebhookCreated,
    WebhookFailures,
    WebhookList,
    WebhookOutput,
)
from posology.published.webhooks.messages import WebhookMessage
from posology.version import HEADER, MEMBER

#: what ``posology schema`` prints, by name
SCHEMAS: Mapping[str, type[BaseModel]] = MappingProxyType(
    {
        "ask": AskOutput,
        "search": SearchOutput,
        "status": IndexStatus,
        "passage": PassageOutput,
        "quote": QuoteSearch,
        "ingest": IngestOutput,
        "fetch": FetchOutput,
        "index": IndexOutput,
        "sync": SyncOutput,
        "prospect": ProspectOutput,
        "notices": NoticesOutput,
        "versions": VersionsOutput,
        "upgrade": UpgradeOutput,
        "config": ConfigOutput,
        "doctor": DoctorOutput,
        "model": ModelOutput,
        "models": ModelList,
        "modelcheck": ModelCheck,
        "error": ErrorOutput,
        "job": JobOutput,
        "jobs": JobPage,
        "affected": AffectedPage,
        "batch": BatchOutput,
        "batches": BatchPage,
        "watch": WatchOutput,
        "watches": WatchList,
        "webhook": WebhookOutput,
        "webhooksecret": WebhookCreated,
        "webhooks": WebhookList,
        "webhookfailures": WebhookFailures,
        "webhookmessage": WebhookMessage,
        "estimate": EstimateOutput,
        "spend": SpendOutput,
        "ledger": LedgerOutput,
        "rebuild": RebuiltOutput,
        "orphans": SettledOutput,
        "export": ExportOutput,
        "archive": ArchiveOutput,
        "mirror": MirrorOutput,
        "tenant": TenantOutput,
        "tenants": TenantList,
        "reconcile": ReconcileOutput,
        "qtable": QTableOutput,
        "promotion": PromotionOutput,
        "train": TrainOutput,
        "calibration": CalibrationOutput,
        "calibrate": CalibratedOutput,
        "replay": ReplayOutput,
        "compare": CompareOutput,
        "eval": EvalOutput,
        "evalrow": EvalRow,
        "dataset": DatasetOutput,
        "finetune": FinetuneOutput,
        "label": LabelOutput,
        "pruner": PrunerOutput,
        "table": TableOutput,
        "screen": ScreeningOutput,
    }
)


#: a line of a file and a message: no command prints them
_UNPRINTED = frozenset({"evalrow", "webhookmessage"})


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON schema of a name of :data:`SCHEMAS`."""
    made = SCHEMAS[name].model_json_schema()
    if name not in _UNPRINTED:
        made["properties"][MEMBER] = {
            "description": "Version of Posology that printed this. A response over HTTP has it in the header "
            f"`{HEADER}`.",
            "type": "string",
        }
    return made


def schema(
    what: Annotated[
        str,
        typer.Argument(metavar="NAME", help=f"Name of an output: {', '.join(SCHEMAS)}."),
    ],
) -> None:
    """Print the JSON schema of a command's --json output."""
    if what not in SCHEMAS:
        raise typer.BadParameter(f"NAME must be one of {', '.join(SCHEMAS)} (got {what!r})")
    with errors(as_json=False):
        sys.stdout.write(json.dumps(schema_of(what), indent=2) + "\n")
        sys.stdout.flush()
