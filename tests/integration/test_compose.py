"""Each service's command, as docker-compose.yml has it, run by hand: there is no container here."""

from __future__ import annotations

import base64
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from redis import Redis
from redis.exceptions import RedisError

from orchestrator.ingest.ingest import run_ingest
from orchestrator.ingest.uploads.process import open_stores
from orchestrator.ingest.writer import Target
from orchestrator.settings import Settings, load_settings
from orchestrator.stack.redis_server import find_server
from orchestrator.work.items import Limits
from posology.llm.providers.table import variables
from posology.published.ingests import IngestOutput

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "s3cret-of-this-test"
LOGIN = "reader:of-this-test"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def _free_port(wanted: int) -> int:
    """The service's own port, or another where that is taken on this machine."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise AssertionError("no port is free")


def _environment(service: dict[str, Any], **known: str) -> dict[str, str]:
    """The service's variables, with Compose's ``${NAME:-default}`` and ``${NAME:?}`` filled in."""

    def fill(match: re.Match[str]) -> str:
        name, operator, word = match["name"], match["operator"], match["word"] or ""
        if name in known:
            return known[name]
        assert operator == ":-", f"{name} has no default and is not in this test"
        return word

    pattern = re.compile(r"\$\{(?P<name>\w+)(?:(?P<operator>:[-?])(?P<word>[^}]*))?\}")
    return {k: pattern.sub(fill, str(v)) for k, v in service["environment"].items()}


@contextmanager
def _running(
    command: list[str],
    environment: dict[str, str],
    log: Path,
    cwd: Path = ROOT,
    *,
    ours: bool = True,
) -> Iterator[subprocess.Popen[bytes]]:
    """A service's process; at the end it is told to stop, which one of ours must do by itself."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, "PATH": path, **environment},
            stdout=out,
            stderr=subprocess.STDOUT,
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                if ours:
                    process.wait(90)
            finally:
                process.kill()


def _until(done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 90
    while not done():
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < deadline, log.read_text(errors="replace")
        time.sleep(0.1)


def _answers(url: str, login: str | None = None, bearer: str | None = None) -> int | None:
    request = urllib.request.Request(url)
    if bearer is not None:
        request.add_header("Authorization", f"Bearer {bearer}")
    if login is not None:
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return None


@pytest.fixture(scope="module")
def redis(compose: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The redis service's own command; a URL as the services are given it."""
    service = compose["services"]["redis"]
    folder = tmp_path_factory.mktemp("compose-redis")
    binaries = folder / "bin"
    binaries.mkdir()
    (binaries / "redis-server").symlink_to(find_server(os.environ.get("PATH")))
    port = _free_port(6379)
    # Compose turns $$ into $
    command = [part.replace("$$", "$") for part in service["command"]]
    (mount,) = [one for one in service["volumes"] if one.startswith("./")]
    here, there, _ = mount.split(":")
    command[-1] = command[-1].replace(there, str((ROOT / here).resolve()))
    if port != 6379:
        command[-1] = f"{command[-1].rstrip()} --port {port}"
    environment = {
        **_environment(service, REDIS_PASSWORD=PASSWORD),
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
    }
    data = folder / "data"
    data.mkdir()
    with _running(command, environment, folder / "log", cwd=data) as process:
        assert PASSWORD not in Path(f"/proc/{process.pid}/cmdline").read_text(errors="replace")
        url = f"redis://:{PASSWORD}@127.0.0.1:{port}/0"
        _until(lambda: _pong(url), process, folder / "log")
        yield url
    assert any(data.rglob("*.aof")) or any(data.rglob("appendonly*"))


def _pong(url: str) -> bool:
    with Redis.from_url(url) as client:
        try:
            return bool(client.ping())
        except (RedisError, OSError):
            return False


def _service(
    compose: dict[str, Any], name: str, redis: str, index: Path
) -> tuple[list[str], dict[str, str]]:
    service = compose["services"][name]
    known = {"REDIS_PASSWORD": PASSWORD, "FLOWER_BASIC_AUTH": LOGIN}
    environment = _environment(service, **known)
    assert environment["POSOLOGY_REDIS_URL"] == f"redis://:{PASSWORD}@redis:6379/0"
    return service["command"], environment | {
        "POSOLOGY_REDIS_URL": redis,
        "POSOLOGY_INDEX": str(index),
        "POSOLOGY_CACHE": str(index.parent / "cache"),
    }


def _at_port(command: list[str], wanted: int) -> tuple[list[str], int]:
    port = _free_port(wanted)
    return [part.replace(str(wanted), str(port)) for part in command], port


def test_redis_wants_its_password(redis: str) -> None:
    port = int(redis.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(b"PING\r\n")
        assert b"NOAUTH" in connection.recv(1024)


def test_the_api_answers(compose: dict[str, Any], redis: str, tmp_path: Path) -> None:
    command, environment = _service(compose, "api", redis, tmp_path)
    command, port = _at_port(command, 8000)
    with _running(command, environment, tmp_path / "log") as process:
        url = f"http://127.0.0.1:{port}"
        _until(lambda: _answers(f"{url}/healthz") == 200, process, tmp_path / "log")
        # it wants keys, also for the figures of all tenants
        assert _answers(f"{url}/v1/jobs") == 401
        assert _answers(f"{url}/metrics") == 401
        assert _answers(f"{url}/v1/jobs", bearer=_key_of_a_tenant(compose, redis)) == 200


def _key_of_a_tenant(compose: dict[str, Any], redis: str) -> str:
    """The key that the tenants service shows on standard output."""
    service = compose["services"]["tenants"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "POSOLOGY_REDIS_URL": redis}

    def run(*arguments: str) -> str:
        command = [*service["entrypoint"], *(arguments or service["command"])]
        return subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
        ).stdout

    key = run("create", "acme", "--day", "5").strip()
    assert "acme" in run()
    return key


@pytest.mark.parametrize("name", ["worker-jobs", "worker-calls", "worker-ingest"])
def test_a_worker_works(
    name: str, compose: dict[str, Any], redis: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "index"
    if name == "worker-jobs":
        # the other kind works without one
        rows = tmp_path / "rows.jsonl"
        rows.write_text('{"id": "t:1", "text": "Aspirin lowered the risk of stroke."}\n')
        run_ingest([rows], Settings(), Target(place=str(place), embedder=str(tiny_encoder)))
    command, environment = _service(compose, name, redis, place)
    environment["POSOLOGY_EMBEDDER"] = str(tiny_encoder)
    check = compose["services"][name]["healthcheck"]["test"]
    assert check[0] == "CMD"
    with _running(command, environment, tmp_path / "log") as process:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

        def healthy() -> bool:
            done = subprocess.run(
                check[1:],
                cwd=ROOT,
                env={**os.environ, "PATH": path, **environment},
                check=False,
                capture_output=True,
            )
            return done.returncode == 0

        _until(healthy, process, tmp_path / "log")
        process.terminate()
        assert process.wait(90) == 0, (tmp_path / "log").read_text(errors="replace")
        # it took itself off the list
        assert not healthy()


def test_flower_shows_the_queues_to_those_who_may(
    compose: dict[str, Any], redis: str, tmp_path: Path
) -> None:
    command, environment = _service(compose, "flower", redis, tmp_path)
    command, port = _at_port(command, 5555)
    # now and then Flower waits for a thread of its own when it is told to stop, as long as Compose lets it
    with _running(command, environment, tmp_path / "log", ours=False) as process:
        url = f"http://127.0.0.1:{port}"
        _until(lambda: _answers(f"{url}/healthcheck") == 200, process, tmp_path / "log")
        assert _answers(f"{url}/workers") == 401
        assert _answers(f"{url}/workers", LOGIN) == 200


@pytest.mark.parametrize("name", ["ingest", "sync"])
def test_a_tool_is_the_command_of_that_name(name: str, compose: dict[str, Any]) -> None:
    service = compose["services"][name]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [*service["entrypoint"], *service["command"]],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert f"posology {name}" in done.stdout


def test_uploads_are_ingested_by_a_service_of_their_own(
    compose: dict[str, Any], redis: str, tiny_encoder: Path, tmp_path: Path
) -> None:
    command, environment = _service(compose, "ingest-uploads", redis, tmp_path / "index")
    known = {"REDIS_PASSWORD": PASSWORD, "POSOLOGY_UPLOADS": "/uploads"}
    for name in ("api", "ingest-uploads"):
        service = compose["services"][name]
        assert _environment(service, **known)["POSOLOGY_UPLOADS"] == "/uploads"
        assert "uploads:/uploads" in service["volumes"]
    environment |= {
        "POSOLOGY_UPLOADS": str(tmp_path / "uploads"),
        "POSOLOGY_EMBEDDER": str(tiny_encoder),
    }
    settings = Settings.model_validate({name: text for name, text in environment.items() if text})

    async def send() -> str:
        async with (
            open_stores(settings) as stores,
            stores.uploads.arriving("acme", "note.txt", Limits(items=1, bytes=1_000)) as arrival,
        ):
            arrival.write(b"Aspirin lowered the risk of stroke.")
            return (await stores.uploads.complete(arrival))[0].id

    async def get() -> IngestOutput:
        async with open_stores(settings) as stores:
            return await stores.uploads.get(ingest, tenant="acme")

    ingest, log = anyio.run(send), tmp_path / "log"
    with _running(command, environment, log) as process:
        _until(lambda: anyio.run(get).over, process, log)
        process.terminate()
        assert process.wait(90) == 0, log.read_text(errors="replace")
    assert anyio.run(get).written == 1


def test_a_backup_is_made_and_the_service_waits_for_the_next_one(
    compose: dict[str, Any], redis: str, tmp_path: Path
) -> None:
    service = compose["services"]["backup"]
    defaults = {match[1]: match[2] for match in re.finditer(r"\$\{(\w+):-(\d+)\}", str(service))}
    command = [
        re.sub(r"\$\{(\w+):-\d+\}", lambda match: defaults[match[1]], part)
        for part in [*service["entrypoint"], *service["command"]]
    ]
    assert command[2:] == ["/backups", "--keep", "7", "--every", "24"]
    assert "./backups:/backups" in service["volumes"]
    environment = _environment(service, REDIS_PASSWORD=PASSWORD) | {
        "POSOLOGY_REDIS_URL": redis,
        "POSOLOGY_INDEX": str(tmp_path / "index"),
        "POSOLOGY_MEMORY": str(tmp_path / "memory.sqlite"),
    }
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "file").touch()
    command[2] = str(tmp_path / "backups")
    with _running(command, environment, tmp_path / "log") as process:
        _until(lambda: any(tmp_path.glob("backups/*Z/backup.json")), process, tmp_path / "log")
        process.terminate()
        assert process.wait(90) == 0, (tmp_path / "log").read_text(errors="replace")
    (made,) = tmp_path.glob("backups/*Z")
    assert {path.name for path in made.iterdir()} == {
        "backup.json", "index", "ledger.jsonl", "redis.rdb",
    }  # fmt: skip


def test_every_service_is_bounded_checked_and_unprivileged(compose: dict[str, Any]) -> None:
    services = compose["services"]
    assert set(services) == {
        "redis",
        "api",
        "worker-jobs",
        "worker-calls",
        "worker-ingest",
        "ingest-uploads",
        "flower",
        "backup",
        "tenants",
        "ingest",
        "sync",
        "ask",
        "demo-notes",
        "demo",
    }
    for name, service in services.items():
        assert set(service["deploy"]["resources"]["limits"]) == {"cpus", "memory", "pids"}, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"], name
        if "profiles" not in service or name == "worker-ingest":
            assert service["healthcheck"]["test"], name
            assert service["restart"] == "unless-stopped", name
    images = {service["image"] for service in services.values()}
    assert len(images) == 2, "Redis's image and ours"
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^USER posology$", dockerfile, re.MULTILINE)
    assert services["redis"]["user"] == "redis"


def test_what_decides_reaches_every_service_and_its_q_table_the_worker(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    for name in ("api", "worker-jobs"):
        known = {"REDIS_PASSWORD": PASSWORD, "POSOLOGY_QTABLE": "/data/table.json"}
        found = _environment(services[name], **known, POSOLOGY_POLICY="qtable")
        assert found["POSOLOGY_POLICY"] == "qtable", name
        assert found["POSOLOGY_QTABLE"] == "/data/table.json", name
    (mount,) = [v for v in services["worker-jobs"]["volumes"] if v.split(":")[1] == "/data"]
    assert mount.endswith(":ro")


def test_without_an_env_file_what_decides_is_as_without_settings(
    compose: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in _environment(
        compose["services"]["worker-jobs"], REDIS_PASSWORD=PASSWORD
    ).items():
        monkeypatch.setenv(variable, value)
    found, plain = load_settings(), Settings.model_construct()
    for name in (
        "policy", "qtable", "model", "self_information", "compressor", "compressor_model", "reranker",
        "machine_dollars_per_hour", "machine_utilisation", "token_codes", "embedder", "keep_versions", "fold",
        "expand",
    ):  # fmt: skip
        assert getattr(found, name) == getattr(plain, name), name


def test_every_variable_is_known_and_explained(compose: dict[str, Any]) -> None:
    known = {field.alias for field in Settings.model_fields.values()} | set(variables())
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    explained = set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"(?<!\$)\$\{(\w+)", text)) == explained
    for name, service in compose["services"].items():
        if service["image"].startswith("posology"):
            assert set(service["environment"]) <= known | {
                "FLOWER_BASIC_AUTH",
                # uvicorn's
                "FORWARDED_ALLOW_IPS",
                "GOOGLE_APPLICATION_CREDENTIALS",
            }, name
    volumes = {v.split(":")[0] for s in compose["services"].values() for v in s.get("volumes", ())}
    assert {v for v in volumes if not v.startswith(".")} == set(compose["volumes"])


def test_commands_are_lists_that_a_shell_would_split_alike(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        command = service["command"]
        assert isinstance(command, list), name
        if command[0] != "sh":
            assert shlex.split(shlex.join(command)) == command
