"""A Redis as JSON Lines of plain values: what one version wrote, for tests of the next ones.

The first line says which version wrote it, when, and what the tests need to know. Each other line is a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from redis import Redis

#: dumps of all supported versions, ``VERSION.jsonl``
FOLDER = Path(__file__).parent
#: milliseconds of a key that is not worth keeping: it is gone before the dump is read
_SHORT = 60_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """The first line of a dump."""

    #: of the package that wrote it
    version: str
    #: POSIX milliseconds of the Redis at the dump
    at: int
    #: jobs and batches by what they are, and keys, passed on to the tests
    named: Mapping[str, str]
    #: files of the stub provider's batches, by name
    provider: Mapping[str, str]


def dump(client: Redis, written: Written, path: Path, *, hide: Mapping[str, str]) -> None:
    """Write all keys of a Redis that nobody changes meanwhile.

    Args:
        client: the connection, which decodes replies.
        written: the first line.
        path: of the file.
        hide: words to replace, such as the name of the machine.
    """
    lines = [json.dumps(asdict(written), sort_keys=True)]
    for name in sorted(client.scan_iter(count=1_000)):
        ttl = int(client.pttl(name))
        if ttl < 0 or ttl > _SHORT:
            kind = str(client.type(name))
            line = {"key": name, "kind": kind, "ttl": max(ttl, 0), "value": _read(client, name, kind)}  # fmt: skip
            lines.append(json.dumps(line, ensure_ascii=False, sort_keys=True))
    text = "".join(f"{line}\n" for line in lines)
    for word, instead in hide.items():
        text = text.replace(word, instead)
    path.write_text(text, encoding="utf-8")


def _read(client: Any, name: str, kind: str) -> Any:
    match kind:
        case "string":
            return client.get(name)
        case "hash":
            return client.hgetall(name)
        case "list":
            return client.lrange(name, 0, -1)
        case "set":
            return sorted(client.smembers(name))
        case "zset":
            return client.zrange(name, 0, -1, withscores=True)
        case "stream":
            return [[place, fields] for place, fields in client.xrange(name)]
    raise ValueError(f"{name} is a {kind}")


def head(path: Path) -> Written:
    """Return the first line of a dump."""
    with path.open(encoding="utf-8") as file:
        return Written(**json.loads(file.readline()))


def restore(client: Redis, path: Path) -> None:
    """Put the keys of a dump into an empty Redis; those with an end live for as long as they had left."""
    for line in _lines(path):
        _write(client, line["key"], line["kind"], line["value"])
        if line["ttl"]:
            client.pexpire(line["key"], line["ttl"])


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        file.readline()
        for line in file:
            yield json.loads(line)


def _write(client: Any, name: str, kind: str, value: Any) -> None:
    match kind:
        case "string":
            client.set(name, value)
        case "hash":
            client.hset(name, mapping=value)
        case "list":
            client.rpush(name, *value)
        case "set":
            client.sadd(name, *value)
        case "zset":
            client.zadd(name, dict(value))
        case "stream":
            for place, fields in value:
                client.xadd(name, fields, id=place)
