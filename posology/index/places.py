"""Address of an index: a folder, or object storage with its credentials."""

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
from posology.network.proxies import proxy_for, through

if TYPE_CHECKING:
    from obstore.store import ObjectStore

#: accepted schemes of an address; only ``s3`` is tested
SCHEMES = ("s3", "gs", "az")
#: timeouts in seconds: connecting, and one small request
CONNECT, REQUEST = 3, 10
#: retries of a request, and seconds after which there are no more
RETRIES, RETRY_TIMEOUT = 2, 10
#: LanceDB's options: a file of a table may take longer than the lock's object
_LANCE = {
    "connect_timeout": f"{CONNECT}s",
    "timeout": "60s",
    "client_max_retries": str(RETRIES),
    "client_retry_timeout": str(RETRY_TIMEOUT),
}
#: any address of the largest object storage, to find the proxy before it
_AMAZON = "https://s3.amazonaws.com"
_UNREACHABLE = "no connection: check the network and POSOLOGY_S3_ENDPOINT"
#: patterns of storage errors, in order of precedence, to advice
_ADVICE = (
    (
        r"credentials? ?not ?loaded|no providers in chain|Failed to get AWS credentials|169\.254\.169\.254|metadata",
        "no credentials are set: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    ),
    (
        r"InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken|InvalidToken|AccessDenied|Forbidden|Unauth|\b40[13]\b",
        "the credentials are refused: check them, and their permission to read and write",
    ),
    (r"NoSuchBucket|bucket does not exist", "no such bucket: create it, or name another"),
    (
        r"PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraint|\b301\b|bare redirect",
        "the bucket is in another region: set AWS_REGION",
    ),
    (
        r"error sending request|timed? ?out|[Cc]onnect|dns error|deadline",
        _UNREACHABLE,
    ),
    (
        r"\b(?:429|5\d\d)\b|SlowDown|ServiceUnavailable",
        "the server is overloaded or unavailable: try again later",
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Address of an index, with its credentials. Its text is the address alone."""

    #: a folder, or an address such as ``s3://bucket/index``
    uri: str
    #: storage options, by LanceDB's names (``aws_access_key_id``, …); never printed
    options: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)

    @classmethod
    def of(cls, where: str | Path | Place, options: Mapping[str, str] | None = None) -> Place:
        """Return a place.

        Args:
            where: a folder or an address; a place is returned as it is.
            options: storage options of an address; folders need none.

        Raises:
            ConfigurationError: the address is invalid, or holds a password.
        """
        if isinstance(where, Place):
            return where
        uri = str(where)
        if "://" not in uri or isinstance(where, Path):
            return cls(uri=uri)
        parts = urlsplit(uri)
        if parts.username is not None or parts.password is not None or parts.query:
            raise ConfigurationError(
                "the address of an index must not contain keys or options: set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY"
            )
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise ConfigurationError(
                f"{uri} is not the address of an index: give a folder, or an address such as s3://bucket/index"
            )
        return cls(uri=uri.rstrip("/"), options=dict(options or {}))

    def __str__(self) -> str:
        return self.uri

    @property
    def folder(self) -> Path | None:
        """Return the local folder; ``None`` on object storage."""
        return None if "://" in self.uri else Path(self.uri)

    @property
    def storage_options(self) -> dict[str, str] | None:
        """Return LanceDB's storage options; ``None`` for a folder."""
        return None if self.folder is not None else {**_LANCE, **self.options}

    def store(self) -> ObjectStore:
        """Return the object store below the address.

        Raises:
            ConfigurationError: the library is not installed, or the options are invalid.
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
                    "retry_timeout": timedelta(seconds=RETRY_TIMEOUT),
                },
            )
        except Exception as error:  # noqa: BLE001 (its errors have no other base)
            raise ConfigurationError(
                f"{self.uri} cannot be opened with these settings ({type(error).__name__}): check "
                "POSOLOGY_S3_ENDPOINT, AWS_REGION and AWS_ACCESS_KEY_ID"
            ) from None
        return store

    def reach(self) -> None:
        """Check within seconds that object storage answers; a folder needs no check.

        LanceDB would try longer, and its errors say less.

        Raises:
            IndexFault: there is no answer, no such bucket, or access is refused.
            ConfigurationError: credentials are missing, or the variable of a proxy cannot be used.
        """
        if self.folder is not None:
            return
        endpoint = self.options.get("aws_endpoint", _AMAZON)
        # the library ignores a proxy that it cannot use
        proxy_for(endpoint)
        store = self.store()
        with storage_errors(self.uri, route=through(endpoint)):
            next(iter(store.list(chunk_size=1)), None)


def s3_options(
    *,
    key: str | None = None,
    secret: str | None = None,
    token: str | None = None,
    region: str | None = None,
    endpoint: str | None = None,
) -> dict[str, str]:
    """Return the storage options of S3, by LanceDB's names; its client looks up those that are ``None``.

    Args:
        key: id of the access key.
        secret: the access key.
        token: session token.
        region: region of the bucket.
        endpoint: address of another server with the S3 API.

    Raises:
        ConfigurationError: the endpoint is not the address of a server.
    """
    if endpoint is not None and not re.fullmatch(r"https?://[\w.\-\[\]:]+/?", endpoint, re.ASCII):
        raise ConfigurationError(
            "POSOLOGY_S3_ENDPOINT must be the address of a server without keys, such as https://s3.example.org or "
            "http://127.0.0.1:9000"
        )
    given = {
        "aws_access_key_id": key,
        "aws_secret_access_key": secret,
        "aws_session_token": token,
        # self-hosted servers have no regions, but need a name of one
        "aws_region": region or ("us-east-1" if endpoint else None),
        "aws_endpoint": endpoint,
        "allow_http": "true" if endpoint and endpoint.startswith("http://") else None,
    }
    return {name: value for name, value in given.items() if value is not None}


@contextmanager
def storage_errors(uri: str, *, route: str = "", what: str = "index") -> Iterator[None]:
    """Raise errors of object storage in the block as :func:`fault` translates them.

    Args:
        uri: the address.
        route: the proxy that requests go through, for the message.
        what: name of what is stored there.
    """
    try:
        yield
    except Exception as error:
        # some of obstore's errors have their own base class, and a missing object is Python's FileNotFoundError
        if not (isinstance(error, OSError) or type(error).__module__.startswith("obstore")):
            raise
        raise fault(error, uri, route=route, what=what) from None


def fault(
    error: Exception, uri: str, *, route: str = "", what: str = "index"
) -> IndexFault | ConfigurationError:
    """Return an error of object storage without its original message, which may hold keys.

    Args:
        error: from obstore or LanceDB.
        uri: the address.
        route: the proxy that requests go through, for the message.
        what: name of what is stored there.
    """
    text = f"{type(error).__name__} {error}"
    for number, (pattern, advice) in enumerate(_ADVICE):
        if re.search(pattern, text):
            if number == 0:
                return ConfigurationError(f"the {what} at {uri} cannot be opened: {advice}")
            by = route if advice is _UNREACHABLE else ""
            return IndexFault(
                f"the {what} at {uri} cannot be read or written{by}: {advice}", index=uri
            )
    rebuild = ", and build a new index if objects of it are missing" if what == "index" else ""
    return IndexFault(
        f"the {what} at {uri} cannot be read or written ({type(error).__name__}): check that the bucket exists{rebuild}",
        index=uri,
    )
