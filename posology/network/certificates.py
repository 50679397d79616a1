"""The certificates of authorities that the environment names, checked before a connection needs them."""

from __future__ import annotations

import functools
import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from posology.errors import ConfigurationError

FILE, FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
#: variables that only libraries with HTTP clients of their own read → what for
OTHERS: Mapping[str, str] = MappingProxyType(
    {
        "REQUESTS_CA_BUNDLE": "for Google's credentials and OpenTelemetry",
        "CURL_CA_BUNDLE": "for Google's credentials and OpenTelemetry",
        "AWS_CA_BUNDLE": "for AWS credentials",
    }
)
_KEYLOG = "SSLKEYLOGFILE"
#: name of a certificate in a folder: OpenSSL finds it by a hash
_HASHED = re.compile(r"[0-9a-f]{8}\.\d+")
_REMEDY = "correct it, or unset it to use the system's certificates"


def authorities() -> ssl.SSLContext:
    """Return the authorities of ``SSL_CERT_FILE``, else of ``SSL_CERT_DIR``, else the system's. They are read once.

    Raises:
        ConfigurationError: the variable names nothing that holds certificates.
    """
    return _read(*(os.environ.get(name) or None for name in (FILE, FOLDER, _KEYLOG)))


@functools.cache
def _read(file: str | None, folder: str | None, log: str | None) -> ssl.SSLContext:
    """Return the authorities, cached: reading them takes 40 ms."""
    import httpx2

    # the client reads the folder only without a file
    if file is not None:
        _check_file(FILE, file)
    elif folder is not None:
        _check_folder(FOLDER, folder)
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        raise ConfigurationError(
            f"{_KEYLOG}: {log}: {error.strerror or error}: correct it, or unset it"
        ) from None


def check_other(variable: str) -> None:
    """Check a variable that only libraries read, of :data:`OTHERS`; it may be unset.

    Raises:
        ConfigurationError: it names nothing that holds certificates.
    """
    if not (path := os.environ.get(variable)):
        return
    if Path(path).is_dir():
        _check_folder(variable, path)
    else:
        _check_file(variable, path)


def distrust(error: ssl.SSLCertVerificationError) -> str:
    """Return why a server's certificate is not trusted, and what to do about it."""
    used = next((f"{n}={os.environ[n]}" for n in (FILE, FOLDER) if os.environ.get(n)), None)
    why = error.verify_message or "no reason given"
    known = f"with the certificates of {used}" if used else "with the system's certificates"
    return f"its certificate is not trusted {known} ({why}): name a file of its authority in {FILE}"


def _check_file(variable: str, path: str) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except ssl.SSLError:
        reason = "no certificates in PEM form"
    except FileNotFoundError:
        reason = "no such file"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
    else:
        return
    raise ConfigurationError(f"{variable}: {path}: {reason}: {_REMEDY}")


def _check_folder(variable: str, path: str) -> None:
    """Check that one of the folders holds certificates: OpenSSL ignores what it does not find."""
    reason = "no such folder"
    for folder in map(Path, path.split(os.pathsep)):
        try:
            if any(_HASHED.fullmatch(one.name) for one in folder.iterdir()):
                return
            reason = "no certificates under their hashes (`openssl rehash` makes such names)"
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
    raise ConfigurationError(f"{variable}: {path}: {reason}: {_REMEDY}")
