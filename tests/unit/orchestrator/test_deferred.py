"""A package that is loaded only when it is used; each case in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.private_parts import CLIENT

START = """
import sys
from orchestrator.deferred import LANCE_CLIENT, defer
def loaded(): return sum(name.startswith(LANCE_CLIENT + ".models.") for name in sys.modules)
defer(LANCE_CLIENT)
import lance_namespace, lancedb
few = loaded()
"""


def run(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", START + program], stderr=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_lancedb_is_imported_without_its_rest_client() -> None:
    run(f"assert few < 20 and LANCE_CLIENT + '.api_client' not in sys.modules, {CLIENT.changed!r}")


def test_lancedb_imports_classes_of_it_alone_and_derives_none() -> None:
    run(f"""
from importlib import import_module
from orchestrator.deferred import _Later
made = [one for name, module in list(sys.modules.items()) if name.partition(".")[0] == LANCE_CLIENT
        for one in vars(module).values() if isinstance(one, _Later)]
assert len(made) > 10, {CLIENT.changed!r}
derived = [one for one in made if type.__subclasses__(one)]
made[0].model_fields  # the package is loaded
real = [getattr(import_module(one.__module__), one.__name__, None) for one in made]
assert not derived and all(isinstance(one, type) for one in real), {CLIENT.changed!r}
""")


def test_a_listing_of_tables_loads_it_and_has_its_own_class(tmp_path: Path) -> None:
    run(f"""
database = lancedb.connect({str(tmp_path)!r})
database.create_table("one", data=[{{"a": 1}}])
found = database.list_tables(limit=10)
assert found.tables == ["one"]
assert isinstance(found, lance_namespace.ListTablesResponse)
assert not isinstance(1, lance_namespace.ListTablesResponse)
assert issubclass(type(found), lance_namespace.ListTablesResponse)
assert lance_namespace.ListTablesResponse.model_fields
assert loaded() > 100
import lance_namespace_urllib3_client.models as models
assert type(found) is models.ListTablesResponse
""")


def test_what_is_loaded_already_stays_and_twice_is_once() -> None:
    program = """
import sys
import lance_namespace_urllib3_client.models as models
from orchestrator.deferred import LANCE_CLIENT, defer
before = len(sys.meta_path)
defer(LANCE_CLIENT)
assert len(sys.meta_path) == before
assert models.ListTablesResponse(tables=[]).tables == []
for name in [n for n in sys.modules if n.startswith(LANCE_CLIENT)]: del sys.modules[name]
defer(LANCE_CLIENT)
defer(LANCE_CLIENT)
assert len(sys.meta_path) == before + 1
"""
    subprocess.run([sys.executable, "-c", program], check=True)
