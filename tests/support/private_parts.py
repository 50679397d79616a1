"""Private parts of other libraries that the code relies on, and what a test says when one of them has changed.

A part is named here with the version that the code was written for. Tests assert what it does, whatever the version is.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A private part of a library."""

    #: its name there
    name: str
    #: distribution that has it
    package: str
    #: version that our code was written for
    written_for: str
    #: file of ours that relies on it
    used_in: str

    @property
    def changed(self) -> str:
        """Message of a test that fails because the part has changed."""
        return (
            f"{self.name} of {self.package} may have changed: {self.used_in} was written for {self.written_for}, and "
            f"{version(self.package)} is installed. Read the new source, and correct {self.used_in} or keep the old version"
        )


#: files of Lance's branches in a folder; the format is published, but no API lists the names alone
BRANCHES = Part(
    name="_refs/branches",
    package="lancedb",
    written_for="0.40.0",
    used_in="posology/index/versions.py",
)
#: what opens the connections of a pool, and the pools of a client
BACKEND = Part(
    name="_network_backend",
    package="httpcore2",
    written_for="2.16.2",
    used_in="posology/network/streams.py",
)
#: parameters of a channel's connections
CONNPARAMS = Part(
    name="Channel._connparams",
    package="kombu",
    written_for="5.7.0",
    used_in="workers/engine/broker.py",
)
#: what makes a channel's clients
CREATE_CLIENT = Part(
    name="Channel._create_client",
    package="kombu",
    written_for="5.7.0",
    used_in="workers/engine/broker.py",
)
#: headers that an SDK reads from the environment, by provider; a client that is copied reads them again
HEADERS = {
    provider: Part(
        name="_custom_headers",
        package=provider,
        written_for=number,
        used_in="posology/llm/providers/wire.py",
    )
    for provider, number in (("openai", "3.52.0"), ("anthropic", "2.11.0"))
}
#: the REST client of LanceDB, of which LanceDB imports classes alone, and derives none from them
CLIENT = Part(
    name="lance_namespace_urllib3_client",
    package="lancedb",
    written_for="0.40.0",
    used_in="orchestrator/deferred.py",
)
