"""A Postgres of the machine, in a temporary folder."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: where Debian has the programs of each version
_DEBIAN = Path("/usr/lib/postgresql")


def _programs() -> Path | None:
    """Return the folder of ``initdb`` and ``pg_ctl``."""
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    return max((path.parent for path in _DEBIAN.glob("*/bin/initdb")), default=None)


@contextmanager
def postgres() -> Iterator[str]:
    """Start a server that listens on a socket only, and stop it; skip where Postgres is not installed.

    Postgres refuses to run as root, who starts it as ``nobody``.
    """
    programs = _programs()
    if programs is None:
        pytest.skip("Postgres is not installed (Debian: apt-get install postgresql)")
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
    # not pytest's folder, into which no other user may look
    folder = Path(tempfile.mkdtemp(prefix="posology-postgres-"))
    os.chown(folder, user.pw_uid, user.pw_gid)
    data = folder / "data"

    def run(program: str, *arguments: object) -> None:
        command = [str(programs / program), "-D", str(data), *map(str, arguments)]
        found = subprocess.run(
            command, user=user.pw_uid, group=user.pw_gid, cwd=folder, check=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        assert found.returncode == 0, found.stderr

    try:
        run(
            "initdb", "--username", "posology", "--auth", "trust", "--no-sync", "--encoding", "UTF8"
        )
        options = f"-c listen_addresses= -c fsync=off -k {folder}"
        run("pg_ctl", "start", "--wait", "--timeout", 90, "--log", folder / "log", "-o", options)
        try:
            yield f"postgresql://posology@/postgres?host={folder}"
        finally:
            run("pg_ctl", "stop", "--wait", "--mode", "immediate")
    finally:
        shutil.rmtree(folder)
