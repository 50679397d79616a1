"""A package that a library imports and that is hardly ever needed: it is loaded when one of its classes is used.

LanceDB imports a generated REST client of some 200 pydantic models, most of the time that its import takes.
A local index needs none of them, a listing of tables one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any

#: the package, by its name at import
LANCE_CLIENT = "lance_namespace_urllib3_client"

_LOCK = RLock()


def defer(package: str) -> None:
    """Load a package when one of its classes is called, checked against or read, not when it is imported.

    Only names of classes may be imported from it. Does nothing if the package is loaded already.
    """
    if package not in sys.modules and not any(
        isinstance(finder, _Finder) and finder.package == package for finder in sys.meta_path
    ):
        sys.meta_path.insert(0, _Finder(package))


class _Finder(MetaPathFinder, Loader):
    """Finds stand-ins for a package and its modules."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - importlib's signature
        target: ModuleType | None = None,  # noqa: ARG002 - the same
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] != self.package:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in is filled as it is read."""

    def load(self, module: str) -> ModuleType:
        """Replace the stand-ins by the package, and import a module of it."""
        with _LOCK:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                for name in [n for n in sys.modules if n.partition(".")[0] == self.package]:
                    del sys.modules[name]
            return import_module(module)


class _StandIn(ModuleType):
    """A module of which every public name is a class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        made = _Later(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class _Later(type):
    """A class that stands for one of the package, which it loads when it is used."""

    def __call__(cls, *args: Any, **given: Any) -> Any:
        return _real(cls)(*args, **given)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _real(cls))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return subclass is cls or issubclass(subclass, _real(cls))

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(_real(cls), name)


def _real(stand_in: _Later) -> Any:
    module = stand_in.__module__
    loader = sys.modules[module].__loader__ if module in sys.modules else None
    found = loader.load(module) if isinstance(loader, _Finder) else import_module(module)
    return getattr(found, stand_in.__name__)
