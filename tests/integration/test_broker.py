"""A worker's connection to its broker, when Redis ends while the worker waits for a message."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
from kombu.connection import Connection
from kombu.entity import Queue
from kombu.message import Message
from kombu.messaging import Consumer
from kombu.transport import redis
from redis import Redis
from redis.exceptions import ConnectionError as Unreachable

from orchestrator.settings import Settings
from orchestrator.stack.ports import free_port
from orchestrator.stack.redis_server import find_server
from posology.errors import ConfigurationError
from tests.support.private_parts import CONNPARAMS, CREATE_CLIENT
from workers.app import make_app
from workers.engine.broker import Channel, Transport


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("rediss://:p@db:6379/0", "required"),
        ("rediss://:p@db:6379/0?ssl_ca_certs=/ca.pem", "required"),
        ("rediss://:p@db:6379/0?ssl_cert_reqs=none", "none"),
        ("redis://:p@db:6379/0", None),
    ],
)
def test_the_brokers_certificate_is_checked(url: str, wanted: str | None) -> None:
    """By default, Celery checks none: whoever answers would get the password."""
    app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": url}))
    asked = parse_qs(urlsplit(app.conf.broker_url).query)
    assert asked.get("ssl_cert_reqs", [None]) == [wanted]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A Redis that a test may end: its URL and its process."""
    try:
        server = find_server(os.environ.get("PATH"))
    except ConfigurationError as error:
        pytest.skip(str(error))
    port = free_port("127.0.0.1")
    command = [str(server), "--port", str(port), "--dir", str(tmp_path), "--save", ""]
    with (
        subprocess.Popen(command, stdout=subprocess.DEVNULL) as process,
        Redis(port=port) as client,
    ):
        try:
            deadline = time.monotonic() + 90
            while True:
                try:
                    client.ping()
                    break
                except Unreachable:
                    assert time.monotonic() < deadline, "Redis did not start in 90 s"
                    time.sleep(0.02)
            yield f"redis://127.0.0.1:{port}/0", process
        finally:
            process.kill()


@pytest.mark.parametrize("pool", ["pool", "async_pool"])
def test_a_channel_whose_connection_is_gone_raises_an_error_of_the_connection(pool: str) -> None:
    gone, kombus = Channel.__new__(Channel), redis.Channel.__new__(redis.Channel)
    gone.connection = kombus.connection = None
    # else ours needs no method of its own any more
    with pytest.raises(AttributeError):
        getattr(kombus, pool)
    try:
        getattr(gone, pool)
    except Transport.connection_errors:
        return
    except AttributeError as error:
        pytest.fail(f"{error}: {CONNPARAMS.changed}")
    pytest.fail(CONNPARAMS.changed)


def test_a_full_redis_is_an_error_of_the_connection_which_is_made_again(
    broker: tuple[str, subprocess.Popen[bytes]],
) -> None:
    url, _ = broker
    app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": url}))
    with app.connection_for_read() as connection, Redis.from_url(url) as client:
        # the name of the class is no part of the address in a log line
        assert connection.as_uri().startswith("redis://")
        channel = connection.default_channel
        Consumer(channel, [Queue("posology.jobs")], callbacks=[lambda *_: None]).consume()
        message = channel.prepare_message("{}", content_type="application/json")
        channel.basic_publish(message, exchange="", routing_key="posology.jobs")
        client.config_set("maxmemory", 1)
        # a message that is taken is written down
        with pytest.raises(connection.connection_errors):
            connection.drain_events(timeout=90)
        client.config_set("maxmemory", 0)


def test_one_client_serves_a_channel_until_its_pool_is_another(
    broker: tuple[str, subprocess.Popen[bytes]],
) -> None:
    url, _ = broker
    app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": url}))
    with app.connection_for_read() as connection:
        channel = cast("Any", connection.default_channel)
        with channel.conn_or_acquire() as first, channel.conn_or_acquire() as again:
            assert first is again, CREATE_CLIENT.changed
        # it waits for messages, and takes no other command
        assert channel.client is not first
        channel._disconnect_pools()
        with channel.conn_or_acquire() as other:
            assert other is not first
            assert other.ping()


def test_a_connection_that_is_lost_while_it_waits_is_given_up_without_an_error(
    broker: tuple[str, subprocess.Popen[bytes]],
) -> None:
    url, process = broker
    app = make_app(Settings.model_validate({"POSOLOGY_REDIS_URL": url}))
    connection: Connection = app.connection_for_read()
    held: list[Message] = []
    # as a worker has them: one that takes messages, and one more
    channels = connection.default_channel, connection.channel()
    for channel, name in zip(channels, ("posology.jobs", "posology.calls"), strict=True):
        Consumer(channel, [Queue(name)], callbacks=[lambda _, m: held.append(m)]).consume()
    message = channels[0].prepare_message("{}", content_type="application/json")
    channels[0].basic_publish(message, exchange="", routing_key="posology.jobs")
    connection.drain_events(timeout=90)
    # it is not acknowledged, and both wait for the next one
    for channel in channels:
        cast("Any", channel)._brpop_start()
    process.kill()
    process.wait(90)
    # as Celery does when a connection is lost, and again before it makes the next one
    connection.collect()
    connection.collect()
    (taken,) = held
    # its work ends later
    with pytest.raises(connection.connection_errors):
        taken.ack()
