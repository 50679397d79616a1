"""Settings of OpenID Connect: which go together, and what groups mean."""

from __future__ import annotations

import subprocess
import sys

import pytest

from orchestrator.api.app import create_app
from orchestrator.oidc.options import Rights, is_safe, options_of
from orchestrator.settings import Settings
from posology.errors import ConfigurationError

GIVEN = {
    "POSOLOGY_AUTH": "keys",
    "POSOLOGY_OIDC_ISSUER": "https://sso.example.org/one",
    "POSOLOGY_OIDC_CLIENT_ID": "c",
    "POSOLOGY_OIDC_CLIENT_SECRET": "the-secret",
    "POSOLOGY_OIDC_GROUPS": "cn=staff=acme, staff = beta,staff=acme",
    "POSOLOGY_OIDC_OPERATORS": "chiefs, /ops",
}


def settings(**changes: str) -> Settings:
    return Settings.model_validate({**GIVEN, **changes})


def test_groups_are_tenants_and_operators() -> None:
    options = options_of(settings())
    assert options is not None
    assert options.name == "sso.example.org"
    assert options.audience == "c"
    assert "the-secret" not in repr(options)
    for groups, tenants, operator in (
        (["staff"], ("acme", "beta"), False),
        ("cn=staff", ("acme",), False),
        (["/ops", "staff", 7, None, ["chiefs"]], ("acme", "beta"), True),
        (["Staff", "acme", ""], (), False),
        (None, (), False),
        ({"staff": 1}, (), False),
    ):
        expected = Rights(tenants=tenants, operator=operator)
        assert options.rights({"groups": groups}) == expected
    assert options.rights({}) == Rights(tenants=(), operator=False)


def test_sessions_end_when_the_meaning_of_groups_changes() -> None:
    changed: tuple[dict[str, str], ...] = ({}, {"POSOLOGY_OIDC_GROUPS": "staff=beta"}, {"POSOLOGY_OIDC_CLAIM": "roles"})  # fmt: skip
    found = [options_of(settings(**changes)) for changes in changed]
    assert len({one.key for one in found if one is not None}) == len(changed)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"POSOLOGY_OIDC_CLIENT_ID": ""}, "POSOLOGY_OIDC_CLIENT_ID"),
        ({"POSOLOGY_OIDC_CLIENT_SECRET": ""}, "POSOLOGY_OIDC_CLIENT_SECRET"),
        ({"POSOLOGY_OIDC_ISSUER": ""}, "POSOLOGY_OIDC_ISSUER"),
        ({"POSOLOGY_AUTH": "open"}, "POSOLOGY_AUTH=keys"),
        ({"POSOLOGY_OIDC_GROUPS": "", "POSOLOGY_OIDC_OPERATORS": " , "}, "POSOLOGY_OIDC_GROUPS"),
        ({"POSOLOGY_OIDC_GROUPS": "staff"}, "group=tenant"),
        ({"POSOLOGY_OIDC_GROUPS": "=acme"}, "group=tenant"),
        ({"POSOLOGY_OIDC_GROUPS": "staff=a b"}, "POSOLOGY_OIDC_GROUPS"),
        ({"POSOLOGY_OIDC_ISSUER": "http://sso.example.org"}, "https://"),
        ({"POSOLOGY_OIDC_ISSUER": "https://sso.example.org?x=1"}, "https://"),
        ({"POSOLOGY_OIDC_ISSUER": "https://me:pw@sso.example.org"}, "https://"),
        ({"POSOLOGY_OIDC_ISSUER": "ftp://127.0.0.1"}, "https://"),
        ({"POSOLOGY_OIDC_ISSUER": "sso.example.org"}, "https://"),
    ],
)
def test_settings_that_do_not_go_together_end_the_start(changes: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as raised:
        create_app(settings(**changes))
    assert "the-secret" not in str(raised.value)
    assert "pw" not in str(raised.value)


def test_without_settings_there_is_none_and_nothing_is_imported() -> None:
    assert options_of(Settings.model_validate({"POSOLOGY_OIDC_CLAIM": "roles"})) is None
    program = (
        "import sys; from orchestrator.api.app import create_app; from orchestrator.settings import Settings; "
        "create_app(Settings()); sys.exit(bool({'authlib', 'joserfc'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "orchestrator.oidc.provider", raising=False)
    monkeypatch.setitem(sys.modules, "authlib", None)
    for name in [one for one in sys.modules if one.startswith("authlib.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigurationError, match=r"pip install 'posology\[oidc\]'"):
        create_app(settings())


@pytest.mark.parametrize(
    ("url", "safe", "remote"),
    [
        ("https://sso.example.org/keys", True, True),
        ("http://127.0.0.1:8080/keys", True, False),
        ("http://localhost/keys", True, False),
        ("http://169.254.169.254/latest", False, False),
        ("http://10.0.0.7/keys", False, False),
        ("file:///etc/passwd", False, False),
        ("https://user@sso.example.org", False, False),
        ("https://", False, False),
        ("//sso.example.org", False, False),
        (None, False, False),
        (["https://sso.example.org"], False, False),
    ],
)
def test_addresses_are_https_or_of_this_machine(url: object, safe: bool, remote: bool) -> None:
    assert is_safe(url) == safe
    assert is_safe(url, local=False) == remote
