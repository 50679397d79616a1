"""The Celery application: ``celery -A workers.app worker``."""

from __future__ import annotations

from celery import Celery

from orchestrator.settings import Settings, load_settings, prepare_libraries

#: where the broker is, unless ``POSOLOGY_REDIS_URL`` says so
DEFAULT_REDIS = "redis://127.0.0.1:6379/0"
#: seconds after which the broker hands an unacknowledged message to another worker; well over the
#: longest time that one question may take, or it would run twice while the first is still at it
VISIBILITY_TIMEOUT = 3_600


def make_app(settings: Settings) -> Celery:
    """A Celery application over one Redis.

    Threads, not processes: a worker holds one copy of the models and one HTTP pool, and nothing
    forks after LanceDB or torch was loaded.
    """
    redis = settings.redis_url.get_secret_value() if settings.redis_url else DEFAULT_REDIS
    app = Celery("posology", broker=redis, backend=redis, include=["workers.tasks"])
    app.conf.update(
        task_default_queue="posology.jobs",
        # only JSON is sent, and only JSON is accepted: a pickle from the broker would be code
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        # a message is acknowledged after its work, and comes again if the worker was lost
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        broker_transport_options={"visibility_timeout": VISIBILITY_TIMEOUT},
        broker_connection_retry_on_startup=True,
        worker_pool="threads",
        worker_prefetch_multiplier=1,
        result_expires=24 * 3_600,
    )
    return app


prepare_libraries()
app = make_app(load_settings())
