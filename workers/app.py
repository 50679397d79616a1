"""The Celery application: ``celery -A workers.app worker``."""

from __future__ import annotations

import warnings
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning
from celery.signals import celeryd_init, setup_logging

from orchestrator.environment import prepare_process
from orchestrator.logs.configuration import configure
from orchestrator.question.request import MAX_DEADLINE
from orchestrator.settings import Settings, load_settings
from workers.engine import broker
from workers.engine.maintenance import JOBS

#: Seconds after which the broker delivers an unacknowledged message again: longer than any job may take. This is the
#: last resort; a dead worker's units are found by their leases, within seconds.
VISIBILITY_TIMEOUT = int(MAX_DEADLINE) + 3_600


def _verified(url: str) -> str:
    """Return an address whose certificate and host name are checked, as the store's client does; kombu asks for it."""
    if not url.startswith("rediss://") or "ssl_cert_reqs=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}ssl_cert_reqs=required"


def make_app(settings: Settings) -> Celery:
    """Build a Celery application over one Redis.

    Threads, not processes: a worker has one copy of the models and one HTTP pool, and nothing forks after LanceDB or
    torch was loaded.
    """
    broker.install()
    app = Celery("posology", broker=_verified(settings.redis), include=["workers.tasks"])
    app.conf.update(
        task_default_queue=JOBS,
        task_create_missing_queues=True,
        # only JSON is sent, and only JSON is accepted: a pickle from the broker would be code
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # results are in the job records, where they outlive a message
        task_ignore_result=True,
        # a message is acknowledged after its work, and delivered again if the worker died
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        broker_transport_options={"visibility_timeout": VISIBILITY_TIMEOUT},
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        worker_pool="threads",
        worker_concurrency=settings.worker_concurrency,
        # for Flower; their arguments are ids
        worker_send_task_events=settings.task_events,
        task_send_sent_event=settings.task_events,
        # as many messages as threads: each is begun at once
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
    )
    return app


@celeryd_init.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _configure_logs(instance: Any, **_: object) -> None:
    """Configure the logs of a worker before Celery writes its first line."""
    configure(load_settings())
    # its banner is no line of a log
    instance.quiet = True
    # Celery warns of root because messages may be pickles; ours are JSON only
    warnings.filterwarnings("ignore", category=SecurityWarning)


@setup_logging.connect  # type: ignore[untyped-decorator]  # Celery ships no types
def _keep_logs(**_: object) -> None:
    """Keep Celery from configuring logs itself, as it does where nothing is connected to this signal."""


prepare_process()
app = make_app(load_settings())
