"""What is heard of a real Redis is what scripts did to it, across a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.fire.watch import Watch
from evals.fire.world.redis_server import RedisServer
from posology.errors import ConfigurationError

MONEY = "posology:{acme}:money"
#: what the ledger's scripts do, without their conditions
SPEND = """
redis.call('HINCRBY', KEYS[1], 'reserved:total', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'reserved:total', -ARGV[1])
redis.call('HINCRBY', KEYS[1], 'spent:total', ARGV[2])
redis.call('XADD', 'posology:{acme}:ledger', '*', 'kind', 'settle', 'bound', ARGV[1], 'charged', ARGV[2], 'known', '1')
"""

#: as change_tenant.lua sets a limit
LIMIT = """
redis.call('HSET', KEYS[1], 'total', ARGV[1])
redis.call('HSET', KEYS[1], 'changed', '5')
"""


def test_scripts_caps_and_places_are_heard_across_a_restart(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    try:
        server.start()
    except ConfigurationError as error:
        pytest.skip(str(error))
    watch = Watch(server.port, ("acme",), tmp_path / "monitor-0001.jsonl")
    try:
        watch.start()
        with server.client() as client:
            client.eval(LIMIT, 1, "posology:{acme}:tenant", 1_000)
            client.eval(SPEND, 1, MONEY, 50, 20)
            # above its bound
            client.eval(SPEND, 1, MONEY, 50, 70)
        # what a Redis that is killed had not sent yet is not heard
        watch.snapshot()
        server.kill()
        server.start()
        watch.snapshot()
        with server.client() as client:
            client.eval(SPEND, 1, MONEY, 50, 5)
        watch.close()
    finally:
        server.stop()
    lines: list[dict[str, Any]] = [
        json.loads(line) for line in (tmp_path / "monitor-0001.jsonl").read_text().splitlines()
    ]
    assert [line["caps"] for line in lines if line["kind"] == "caps"] == [{"total": 1_000}]
    changes = [line for line in lines if line["kind"] == "change"]
    assert [line["changes"]["spent:total"] for line in changes] == [20, 70, 5]
    assert [line["changes"]["reserved:total"] for line in changes] == [0, 0, 0]
    assert [line.get("excess", 0) for line in changes] == [0, 20, 0]
    places = [line for line in lines if line["kind"] == "snapshot"]
    totals = [(place["counters"].get("spent:total", 0), place["gapless"]) for place in places]
    # first of all, and after the restart, something may have been missed
    assert totals[0] == (0, False)
    assert (90, False) in totals
    assert totals[-1] == (95, True)
    assert places[-1]["caps"] == {"total": 1_000}
