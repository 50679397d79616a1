"""Arenas of memory of a process that serves."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

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


def arenas(prepare: str, **environment: str) -> int:
    given = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    done = subprocess.run(
        [sys.executable, "-c", ARENAS.format(prepare=prepare)],
        env={**given, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout.count("<heap nr=")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has arenas")
def test_threads_of_a_process_that_serves_share_two_arenas() -> None:
    assert arenas("prepare_libraries") > 3
    assert arenas("prepare_process") == 2
    assert arenas("prepare_process", MALLOC_ARENA_MAX="") == 2
    assert arenas("prepare_process", MALLOC_ARENA_MAX="3") == 3
    assert arenas("prepare_process", GLIBC_TUNABLES="glibc.malloc.arena_max=4") == 4
