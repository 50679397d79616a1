"""Settings: the only reader of what configures Posology."""

from orchestrator.settings.credentials import (
    Credentials,
    key_providers,
    keys,
    local_providers,
    needs_key,
)
from orchestrator.settings.origin import Origin, origins
from orchestrator.settings.settings import Settings, config_files, known_keys, load_settings
from orchestrator.settings.sources import config_choice, index_here
from orchestrator.settings.values import (
    DEFAULT_COMPRESSOR,
    DEFAULT_MODEL,
    DEFAULT_POLICY,
    DEFAULT_REDIS,
    MAX_TOKENS,
    MIN_TOKENS,
    Auth,
    LogFormat,
    LogLevel,
    models,
)

__all__ = [
    "DEFAULT_COMPRESSOR",
    "DEFAULT_MODEL",
    "DEFAULT_POLICY",
    "DEFAULT_REDIS",
    "MAX_TOKENS",
    "MIN_TOKENS",
    "Auth",
    "Credentials",
    "LogFormat",
    "LogLevel",
    "Origin",
    "Settings",
    "config_choice",
    "config_files",
    "index_here",
    "key_providers",
    "keys",
    "known_keys",
    "load_settings",
    "local_providers",
    "models",
    "needs_key",
    "origins",
]
