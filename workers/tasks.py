"""Tasks: decode, run, encode, and nothing else."""

from __future__ import annotations

from typing import Any

from celery.signals import worker_shutdown
from celery.utils.log import get_task_logger

from orchestrator.input import AskRequest
from orchestrator.output import ask_output, error_output
from orchestrator.settings import load_settings
from posology.errors import PosologyError
from posology.llm.accounting import Account
from workers.app import app
from workers.runtime import Runtime

logger = get_task_logger(__name__)
runtime = Runtime(load_settings)


@app.task(name="posology.answer")  # type: ignore[untyped-decorator]  # Celery ships no types
def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Answer one question.

    Takes an ``AskRequest`` and returns an ``AskOutput`` or an ``ErrorOutput``, all as JSON objects: a
    failure is a result that says what was spent, not a lost message.
    """
    account = Account()
    try:
        portal, service = runtime.start()
        asked = AskRequest.parse(request)
        report = portal.call(service.ask, asked.to_request(service.settings), account)
    except PosologyError as error:
        return error_output(error, account).model_dump(mode="json")
    except Exception as error:
        logger.exception("a defect of Posology")
        defect = PosologyError(f"a defect of Posology: {type(error).__name__}: {error}")
        return error_output(defect, account).model_dump(mode="json")
    return ask_output(report).model_dump(mode="json")


@worker_shutdown.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _close(**_: object) -> None:
    runtime.close()
