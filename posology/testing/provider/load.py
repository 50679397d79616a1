"""The stub provider for load, started as a process and asked over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from posology.testing.provider.batches.book import BatchFaults
from posology.testing.provider.echo import echo
from posology.testing.provider.faults import Faults, estimate
from posology.types import Usage

#: seconds; a process that takes longer to stop is killed
_PATIENCE = 5.0
# a proxy of the surroundings has no business between two processes of one machine
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class LoadStub:
    """A provider in a process of its own, for many concurrent calls and for faults by chance.

    As in::

        with LoadStub(Faults(latency=(0.5, 1.5), cuts=0.01), seed=7) as stub:
            adapter = OpenAIAdapter(api_key="any", base_url=stub.openai_url)
            ...
            lost = [e for e in stub.ledger() if e["finished"] and not e["delivered"]]

    The process ends with the ``with`` statement, and also when this one dies.

    Args:
        faults: how long replies take and how often what goes wrong.
        reply: from a request's body to the text of the reply; a function of a module that the new
            process can import.
        usage: from a request's body and the text of the reply to the tokens that are billed; a function
            as ``reply`` is.
        seed: of the faults.
        port: to listen on; 0 takes a free one.
        batch_faults: what goes wrong with batches.
        batches: folder where batches outlive the process, for the next stub; ``None``: they do not.

    Raises:
        ValueError: the function cannot be imported by its name.
    """

    def __init__(
        self,
        faults: Faults = Faults(),  # noqa: B008 - a frozen value
        *,
        reply: Callable[[Any], str] = echo,
        usage: Callable[[Any, str], Usage] = estimate,
        seed: int = 0,
        port: int = 0,
        batch_faults: BatchFaults = BatchFaults(),  # noqa: B008 - a frozen value
        batches: Path | None = None,
    ) -> None:
        for name, function in (("reply", reply), ("usage", usage)):
            if not function.__qualname__.isidentifier():
                raise ValueError(f"{name} is a function of a module, not a lambda or a local one.")
        self._command = [
            sys.executable, "-m", "posology.testing.provider.serve", "--with-stdin",
            "--port", str(port),
            "--seed", str(seed),
            "--reply", f"{reply.__module__}:{reply.__qualname__}",
            "--usage", f"{usage.__module__}:{usage.__qualname__}",
            "--latency", *(str(seconds) for seconds in faults.latency),
            "--rate-limited", str(faults.rate_limited),
            "--retry-after", str(faults.retry_after),
            "--errors", str(faults.errors),
            "--cuts", str(faults.cuts),
            "--errors-within", str(faults.errors_within),
            "--zero-usage", str(faults.zero_usage),
            "--breaks", str(faults.breaks),
            "--cuts-after-work", str(faults.cuts_after_work),
            "--batch-faults", json.dumps(asdict(batch_faults)),
            *([] if batches is None else ["--batches", str(batches)]),
        ]  # fmt: skip
        self._process: subprocess.Popen[str] | None = None
        self._url: str | None = None

    def __enter__(self) -> Self:
        """Start the process, and wait until it listens.

        Raises:
            RuntimeError: it ended instead; its own words are on standard error.
        """
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._url = self._process.stdout.readline().strip() or None
        if self._url is None:
            self._stop()
            raise RuntimeError("the stub did not start; what it said is on standard error")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the process."""
        self._stop()

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        assert self._url is not None, "use the stub in a with statement"
        return self._url

    @property
    def pid(self) -> int:
        """Id of its process."""
        assert self._process is not None, "use the stub in a with statement"
        return self._process.pid

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI adapter."""
        return f"{self.url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for the Anthropic adapter."""
        return self.url

    def ledger(self, *, start: int = 0) -> list[dict[str, Any]]:
        """The requests from a place on; the keys are :class:`~posology.testing.provider.ledger.Entry`'s."""
        entries: list[dict[str, Any]] = self._ask("GET", f"/_ledger?start={start}")
        return entries

    def stats(self) -> dict[str, Any]:
        """See :meth:`~posology.testing.provider.ledger.StubLedger.stats`."""
        counts: dict[str, Any] = self._ask("GET", "/_stats")
        return counts

    def end_batches(self) -> None:
        """End the batches that are in progress."""
        self._ask("POST", "/_end_batches")

    def reset(self) -> None:
        """Forget every request so far."""
        self._ask("POST", "/_reset")

    def _ask(self, method: str, path: str) -> Any:
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 - loopback
        with _OPENER.open(request, timeout=30) as response:
            return json.load(response)

    def _stop(self) -> None:
        assert self._process is not None
        with self._process as process:
            process.terminate()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
