"""Waits between tries of a command on Redis."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis

from posology.store.connection import FEW_TRIES, LONG, SHORT, TRIES, connect


@pytest.mark.parametrize(("tries", "bound"), [(FEW_TRIES, SHORT), (TRIES, LONG)])
def test_all_waits_end_before_the_command_does(
    tries: int, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redis.backoff.random.random", lambda: 1.0)
    client: Redis = connect("redis://127.0.0.1:1/0", tries=tries)
    retry = client.connection_pool.connection_kwargs["retry"]
    # else a Redis that refuses connections looks like one that hangs
    waits = [retry._backoff.compute(failures) for failures in range(1, tries + 1)]
    assert sum(waits) < 0.95 * bound
