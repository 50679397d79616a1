"""Where an index lies: in a folder, or on object storage, with what it takes to reach it there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from posology.errors import ConfigurationError, IndexFault

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: what stands before ``://``; tested is ``s3`` alone
SCHEMES = ("s3", "gs", "az")
#: seconds to connect, and for one small request
CONNECT, REQUEST = 3, 10
#: tries again at a request, and the seconds after which there are none
RETRIES, PATIENCE = 2, 10
#: of LanceDB: a file of a table may take longer than the lock's object
_LANCE = {
    "connect_timeout": f"{CONNECT}s",
    "timeout": "60s",
    "client_max_retries": str(RETRIES),
    "client_retry_timeout": str(PATIENCE),
}
#: what the errors of storage say, in this order → what is to be done
_SAID = (
    (
        r"credentials? ?not ?loaded|no providers in chain|Failed to get AWS credentials|169\.254\.169\.254|metadata",
        "no credentials are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AccessDenied|Forbidden|Unauth|\b40[13]\b",
        "it refuses the credentials: see that they are right, and allow reading and writing there",
    ),
    (r"NoSuchBucket|bucket does not exist", "there is no such bucket: create it, or name another"),
    (
        r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint|\b301\b|bare redirect",
        "the bucket is of another region: set AWS_REGION",
    ),
    (
        r"error sending request|timed? ?out|[Cc]onnect|dns error|deadline",
        "no connection: check the network and POSOLOGY_S3_ENDPOINT",
    ),
    (
        r"\b(?:429|5\d\d)\b|SlowDown|ServiceUnavailable",
        "it is overloaded or out of order: try again later",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where an index lies. Its text is the address alone."""

    #: a folder, or an address such as ``s3://bucket/index``
    uri: str
    #: what it takes to reach it, by LanceDB's names (``aws_access_key_id``, …); never shown
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @classmethod
    def of(cls, where: str | Path | Place, options: Mapping[str, str] | None = None) -> Place:
        """The place that is meant.

        Args:
            where: a folder or an address; a place stays what it is.
            options: what it takes to reach an address; folders need nothing.

        Raises:
            ConfigurationError: it is no address of an index, or holds a password.
        """
        if isinstance(where, Place):
            return where
        uri = str(where)
        if "://" not in uri or isinstance(where, Path):
            return cls(uri=uri)
        parts = urlsplit(uri)
        if parts.username is not None or parts.password is not None or parts.query:
            raise ConfigurationError(
                "the address of an index holds no keys and no options: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY"
            )
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise ConfigurationError(
                f"{uri} is no place for an index: give a folder, or an address such as s3://bucket/index"
            )
        return cls(uri=uri.rstrip("/"), options=dict(options or {}))

    def __str__(self) -> str:
        return self.uri

    @property
    def folder(self) -> Path | None:
        """The local folder; ``None`` on object storage."""
        return None if "://" in self.uri else Path(self.uri)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """For LanceDB; ``None`` for a folder."""
        return None if self.folder is not None else {**_LANCE, **self.options}

    def store(self) -> ObjectStore:
        """The objects below the address.

        Raises:
            ConfigurationError: the library for it is not installed, or the options cannot be.
        """
        try:
            from obstore import store as stores
        except ImportError:
            raise ConfigurationError(
                "an index on object storage needs the package obstore: pip install 'posology[s3]'"
            ) from None
        plain = self.options.get("allow_http") == "true"
        # the options of all kinds of storage are one parameter
        open_url: Any = stores.from_url
        try:
            store: ObjectStore = open_url(
                self.uri,
                config={k: v for k, v in self.options.items() if k != "allow_http"},
                client_options={
                    "connect_timeout": timedelta(seconds=CONNECT),
                    "timeout": timedelta(seconds=REQUEST),
                    "allow_http": plain,
                },
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": timedelta(seconds=PATIENCE),
                },
            )
        except Exception as error:  # noqa: BLE001 (its errors have no other base)
            raise ConfigurationError(
                f"{self.uri} cannot be reached with these settings ({type(error).__name__}): see "
                "POSOLOGY_S3_ENDPOINT, AWS_REGION and AWS_ACCESS_KEY_ID"
            ) from None
        return store

    def reach(self) -> None:
        """See that object storage answers, within seconds; a folder needs nothing.

        LanceDB would try for longer, and says less of what is wrong.

        Raises:
            IndexFault: it does not, or has no such bucket, or refuses.
            ConfigurationError: there are no credentials.
        """
        if self.folder is not None:
            return
        store = self.store()
        with told(self.uri):
            next(iter(store.list(chunk_size=1)), None)


def s3_options(
    *,
    key: str | None = None,
    secret: str | None = None,
    token: str | None = None,
    region: str | None = None,
    endpoint: str | None = None,
) -> dict[str, str]:
    """What it takes to reach S3, by LanceDB's names; what is ``None`` its client looks for itself.

    Args:
        key: id of the access key.
        secret: the access key.
        token: of a session.
        region: of the bucket.
        endpoint: address of another server that speaks S3.

    Raises:
        ConfigurationError: the endpoint is no address of a server.
    """
    if endpoint is not None and not re.fullmatch(r"https?://[\w.\-\[\]:]+/?", endpoint, re.ASCII):
        raise ConfigurationError(
            "POSOLOGY_S3_ENDPOINT is no address of a server, such as https://s3.example.org or "
            "http://127.0.0.1:9000, without keys in it"
        )
    given = {
        "aws_access_key_id": key,
        "aws_secret_access_key": secret,
        "aws_session_token": token,
        # servers of one's own have no regions, and want one named
        "aws_region": region or ("us-east-1" if endpoint else None),
        "aws_endpoint": endpoint,
        "allow_http": "true" if endpoint and endpoint.startswith("http://") else None,
    }
    return {name: value for name, value in given.items() if value is not None}


@contextmanager
def told(uri: str) -> Iterator[None]:
    """Raise what object storage raises in the block as :func:`fault` does.

    Args:
        uri: the address.
    """
    try:
        yield
    except Exception as error:
        # of obstore's errors some have their own base, and what is not found is Python's
        if not (isinstance(error, OSError) or type(error).__module__.startswith("obstore")):
            raise
        raise fault(error, uri) from None


def fault(error: Exception, uri: str) -> IndexFault | ConfigurationError:
    """What went wrong with object storage, in words without what the request held: it may hold keys.

    Args:
        error: of obstore or LanceDB.
        uri: the address.
    """
    text = f"{type(error).__name__} {error}"
    for number, (pattern, what) in enumerate(_SAID):
        if re.search(pattern, text):
            if number == 0:
                return ConfigurationError(f"the index at {uri} cannot be reached: {what}")
            return IndexFault(f"the index at {uri} cannot be read or written: {what}", index=uri)
    return IndexFault(
        f"the index at {uri} cannot be read or written ({type(error).__name__}): see that the bucket is there, "
        "and build the index anew if objects of it are gone",
        index=uri,
    )
