"""The environment of our processes: memory as glibc and Arrow keep it, proxies of libraries, the encoding of children."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.environment import FOR_SERVICES, environment, prepare_libraries
from orchestrator.logs import telemetry
from orchestrator.settings import load_settings
from orchestrator.stack.options import StackOptions, api_command, ingest_command, worker_command

#: each of 12 threads takes memory while all others have some; prints the number of arenas
ARENAS = """
import ctypes, threading
from orchestrator.environment import prepare_libraries, prepare_process
{prepare}()
libc = ctypes.CDLL(None)
libc.fopen.restype, libc.malloc.restype = ctypes.c_void_p, ctypes.c_void_p
have = threading.Barrier(13)
def take():
    libc.malloc(ctypes.c_size_t(10_000))
    have.wait()
for _ in range(12):
    threading.Thread(target=take).start()
have.wait()
out = ctypes.c_void_p(libc.fopen(b"/dev/stdout", b"w"))
libc.malloc_info(0, out)
libc.fclose(out)
"""

#: each of 20 threads frees six pieces of each size up to a KiB, and stays; prints the bytes that are not free
CACHES = """
import ctypes, threading
class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in "abcdefghij"]
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.mallinfo.restype = ctypes.c_void_p, Info
freed, ended = threading.Barrier(21), threading.Barrier(21)
def take():
    have = [libc.malloc(ctypes.c_size_t(size)) for size in range(24, 1024, 16) for _ in range(6)]
    for piece in have:
        libc.free(ctypes.c_void_p(piece))
    freed.wait()
    ended.wait()
for _ in range(20):
    threading.Thread(target=take).start()
freed.wait()
print(libc.mallinfo().h)
ended.wait()
"""

#: prints the pool of memory that Arrow uses
POOL = """
from orchestrator.environment import prepare_process
prepare_process()
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""


def printed(program: str, environment: dict[str, str]) -> str:
    """Return what a program prints with these variables, and others of this process but that of arenas."""
    given = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**given, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def arenas(prepare: str, **environment: str) -> int:
    return printed(ARENAS.format(prepare=prepare), environment).count("<heap nr=")


def kept(**environment: str) -> int:
    """Return the bytes that are not free after the threads freed theirs."""
    return int(printed(CACHES, environment))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_threads_of_a_process_that_serves_share_two_arenas() -> None:
    assert arenas("prepare_libraries") > 3
    assert arenas("prepare_process") == 2
    assert arenas("prepare_process", MALLOC_ARENA_MAX="") == 2
    assert arenas("prepare_process", MALLOC_ARENA_MAX="3") == 3
    assert arenas("prepare_process", GLIBC_TUNABLES="glibc.malloc.arena_max=4") == 4


def test_a_process_that_serves_has_no_pool_of_arrows_own() -> None:
    assert printed(POOL, {}) == "system\n"
    assert printed(POOL, {"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}) == "mimalloc\n"


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these caches")
def test_a_thread_keeps_little_of_what_it_freed() -> None:
    # 20 threads, 62 sizes, 6 pieces: 4 MB
    assert kept(GLIBC_TUNABLES="") - kept(**FOR_SERVICES) > 3_000_000


def test_services_are_started_so_and_the_operators_own_value_wins() -> None:
    name, value = next(iter(FOR_SERVICES.items()))
    for own, begun in (
        ({}, value),
        ({name: "glibc.malloc.arena_max=4"}, "glibc.malloc.arena_max=4"),
    ):
        options = StackOptions(environment=own)
        for command in (
            api_command(options, "redis://127.0.0.1/0", 1),
            worker_command(options, "redis://127.0.0.1/0", 1),
            ingest_command(options, "redis://127.0.0.1/0"),
        ):
            assert command.environment[name] == begun
    assert f"{name}={value}" in Path("Dockerfile").read_text(encoding="utf-8")


def test_libraries_ask_this_machine_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_libraries()
    assert "NO_PROXY" not in os.environ
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "corp.example")
    prepare_libraries()
    prepare_libraries()
    assert os.environ["NO_PROXY"] == "corp.example,localhost,127.0.0.0/8,127.0.0.1,::1"
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"]


def test_children_write_in_the_encoding_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "utf-16")
    monkeypatch.setenv("OTHER", "stays")
    assert environment()["PYTHONIOENCODING"] == "utf-8"
    assert environment()["OTHER"] == "stays"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("ALL_PROXY", "socks4://proxy"), ("REQUESTS_CA_BUNDLE", "/nowhere.pem")],
)
def test_without_a_way_to_the_collector_no_traces_are_sent(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.invalid")
    monkeypatch.setenv(variable, value)
    telemetry.start(load_settings(), level=logging.INFO)
    assert f"no traces are sent: {variable}: {value}" in caplog.text
