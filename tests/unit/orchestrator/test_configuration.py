"""Configuration files, their precedence, and stored keys."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.configuration.keys import Keys, Place
from orchestrator.settings import Settings, known_keys, load_settings, origins
from posology.errors import ConfigurationError

RUNNER = CliRunner()
#: settings that are addresses
ADDRESSES = (
    *("openai_base_url", "anthropic_base_url", "azure_openai_endpoint"),
    *("anthropic_vertex_base_url", "s3_endpoint", "eutils_url", "europepmc_url", "otlp_endpoint"),
)
SECRET = "sk-very-secret-indeed"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and a user without configuration."""
    monkeypatch.delenv("POSOLOGY_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    # a model server of a developer is no default of the tests
    monkeypatch.setattr("orchestrator.cli.setup.checks.running_servers", lambda _: ())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


def user_file(here: Path, text: str) -> Path:
    path = here.parent / "home" / "posology" / "posology.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def source(name: str) -> str:
    return next(one.source for one in origins(load_settings()) if one.name == name)


def test_the_folders_file_comes_before_the_users_and_variables_before_both(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (load_settings().attempts, source("attempts")) == (4, "default")
    users = user_file(here, 'attempts = 5\nmodel = "openai:u"\ntoken_codes = false\n')
    assert (load_settings().attempts, source("attempts")) == (5, str(users))
    (here / "posology.toml").write_text("attempts = 6\n")
    assert (load_settings().attempts, source("attempts")) == (6, "posology.toml")
    monkeypatch.setenv("POSOLOGY_ATTEMPTS", "7")
    assert (load_settings().attempts, source("attempts")) == (7, "environment")
    assert load_settings().model == "openai:u"
    assert load_settings().token_codes is False
    # one file instead of both, or none
    (here / "other.toml").write_text("call_timeout = 9.5\n")
    monkeypatch.setenv("POSOLOGY_CONFIG", "other.toml")
    assert (load_settings().call_timeout, source("model")) == (9.5, "default")
    monkeypatch.setenv("POSOLOGY_CONFIG", "off")
    assert load_settings().call_timeout == 60


def test_another_name_of_a_variable_comes_before_a_file_too(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user_file(here, 's3_endpoint = "http://file"\naws_region = "file"\n')
    assert load_settings().s3_endpoint == "http://file"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://variable")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "variable")
    assert load_settings().s3_endpoint == "http://variable"
    assert load_settings().aws_region == "variable"
    assert source("s3_endpoint") == "environment"


def test_a_providers_address_may_stand_in_the_users_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = user_file(here, 'openai_base_url = "http://127.0.0.1:1"\n')
    assert load_settings().credentials("openai").base_url == "http://127.0.0.1:1"
    assert source("openai_base_url") == str(users)
    # this is the current folder's file, too
    monkeypatch.chdir(users.parent)
    assert load_settings().credentials("openai").base_url == "http://127.0.0.1:1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:2")
    assert load_settings().credentials("openai").base_url == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    "line",
    [
        *(f'{name} = "http://127.0.0.1:1"' for name in ADDRESSES),
        *(f'{name} = "elsewhere"' for name in ("prices", "prompts", "cache", "tiktoken_files")),
        *(f'{name} = "x.evil.example/#"' for name in ("aws_region", "cloud_ml_region")),
        *(f"{name} = true" for name in ("trace_texts", "log_questions", "open_uploads")),
        'redis_url = "redis://127.0.0.1/1"',
        'auth = "open"',
        'hosts = "evil.example"',
        'webhook_networks = "127.0.0.0/8"',
    ],
)
def test_a_folders_file_sends_nothing_elsewhere_and_opens_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """It may have come with a download: the user's own file, or one that is named, decides."""
    name = line.partition(" ")[0]
    (here / "posology.toml").write_text(line)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    said = str(caught.value)
    assert said.startswith(f"posology.toml: {name} ")
    assert all(word in said for word in (str(here.parent / "home"), known_keys()[name].variable))
    monkeypatch.setenv("POSOLOGY_CONFIG", "posology.toml")
    assert source(name) == "posology.toml"


@pytest.mark.usefixtures("here")
def test_every_address_is_the_users_alone() -> None:
    known = known_keys()
    assert {name for name in known if name.endswith(("_url", "_endpoint"))} <= {
        name for name, key in known.items() if key.own
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("attemps = 3", ("attemps", "attempts")),
        ('POSOLOGY_INDEX = "x"', ("POSOLOGY_INDEX", "index")),
        ("attempts = 0", ("attempts",)),
        ('attempts = "3"', ("attempts",)),
        ("token_codes = 'yes'", ("token_codes",)),
        ("index = [1]", ("index",)),
        ("[index]\na = 1", ("index",)),
        ("x =", ("TOML",)),
        (f'openai_api_key = "{SECRET}"', ("openai_api_key", "keys set openai")),
        (f'metrics_key = "{SECRET}"', ("metrics_key", "POSOLOGY_METRICS_KEY")),
        (f'redis_url = "redis://:{SECRET}@h"', ("redis_url", "POSOLOGY_REDIS_URL")),
        ("policy = 'routre'", ("policy", "routre")),
    ],
)
def test_a_wrong_file_is_refused_by_name_and_no_secret_is_repeated(
    here: Path, text: str, named: tuple[str, ...]
) -> None:
    (here / "posology.toml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings()
    assert all(name in str(caught.value) for name in ("posology.toml", *named))
    assert SECRET not in str(caught.value)


def test_an_address_without_a_password_and_empty_texts_are_fine(here: Path) -> None:
    user_file(here, 'redis_url = "redis://h/1"\nindex = ""\nqtable = "~/t"\n')
    settings = load_settings()
    assert settings.redis == "redis://h/1"
    assert settings.index is None
    assert settings.qtable == str(Path.home() / "t")


def test_a_named_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSOLOGY_CONFIG", "nowhere.toml")
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml"):
        load_settings()


def test_the_index_in_the_folder_is_the_default(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "index").mkdir()
    assert load_settings().index is None
    (here / "index" / "passages.lance").mkdir()
    assert (load_settings().index, source("index")) == ("index", "folder")
    monkeypatch.setenv("POSOLOGY_INDEX", "other")
    assert load_settings().index == "other"


def test_what_init_writes_is_valid_with_all_of_its_lines(here: Path) -> None:
    users = user_file(here, "")
    for file, own in ((here / "posology.toml", False), (users, True)):
        done = RUNNER.invoke(app, ["init", "--force", str(file)])
        assert done.exit_code == 0
        text = file.read_text()
        assert tomllib.loads(text) == {}
        assert load_settings() == Settings()
        lines = [line.removeprefix("# ") for line in text.splitlines() if " = " in line]
        settings = [line for line in lines if line.partition(" = ")[0] in known_keys()]
        wanted = [key for key in known_keys().values() if not key.secret and (own or not key.own)]
        assert len(settings) == len(wanted)
        file.write_text("\n".join(settings))
        assert load_settings().model_dump() == Settings.model_construct().model_dump()
    # never over what somebody wrote
    again = RUNNER.invoke(app, ["init"])
    assert again.exit_code == ConfigurationError.exit_code
    assert RUNNER.invoke(app, ["init", "--force"]).exit_code == 0


def test_config_show_hides_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("POSOLOGY_METRICS_KEY", SECRET)
    for words in (["config", "show"], ["config", "show", "--json"]):
        done = RUNNER.invoke(app, words)
        assert done.exit_code == 0
        assert SECRET not in done.output
    shown = {one["name"]: one for one in json.loads(done.stdout)["settings"]}
    assert shown["openai_api_key"] | {"value": None} == shown["openai_api_key"]
    assert shown["metrics_key"]["source"] == "environment"
    changed = json.loads(RUNNER.invoke(app, ["config", "show", "--changed", "--json"]).stdout)
    assert {one["name"] for one in changed["settings"]} == {"openai_api_key", "metrics_key"}


def test_children_get_the_same_values_without_the_files(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "posology.toml").write_text(
        'attempts = 6\ntoken_codes = false\nmachine_dollars_per_hour = "off"\nfold = "trials"\n'
    )
    user_file(here, 'openai_base_url = "http://127.0.0.1:1"\n')
    Keys(here.parent / "home" / "posology").set("openai", SECRET)
    monkeypatch.setenv("POSOLOGY_METRICS_KEY", SECRET)
    mine = load_settings()
    mine_credentials = mine.credentials("openai")
    # a value that is not set is not a value of the name "off"
    unset = mine.model_copy(update={"prices": None})
    assert "POSOLOGY_PRICES" not in unset.environment()
    for name, value in mine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(here.parent)
    theirs = load_settings()
    assert theirs.model_dump() == mine.model_dump()
    assert theirs.credentials("openai") == mine_credentials
    assert mine_credentials.api_key is not None


class Ring(KeyringBackend):
    """A keyring in memory, which may be locked."""

    priority = 5.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the base has no types
        self.held: dict[str, str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._open()
        return self.held.get(username)

    def set_password(self, service: str, username: str, password: str) -> None:
        self._open()
        self.held[username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._open()
        if self.held.pop(username, None) is None:
            raise PasswordDeleteError("not there")

    def _open(self) -> None:
        if self.locked:
            raise KeyringLocked("locked")


def test_keys_are_stored_in_a_file_that_only_the_user_reads(here: Path) -> None:
    done = RUNNER.invoke(app, ["keys", "set", "openai"], input=f"{SECRET}\n")
    assert (done.exit_code, SECRET in done.output) == (0, False)
    (file,) = (here.parent / "home" / "posology").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key = load_settings().credentials("openai").api_key
    assert key is not None
    assert key.get_secret_value() == SECRET
    assert source("openai_api_key") == "stored key (file)"
    assert RUNNER.invoke(app, ["keys", "list"]).stdout == "openai\tfile\n"
    assert RUNNER.invoke(app, ["keys", "remove", "openai"]).exit_code == 0
    assert load_settings().credentials("openai").api_key is None
    assert RUNNER.invoke(app, ["keys", "remove", "openai"]).exit_code == 4


@pytest.mark.usefixtures("here")
def test_a_list_without_keys_says_so() -> None:
    none = RUNNER.invoke(app, ["keys", "list"])
    assert (none.exit_code, none.stdout) == (0, "")
    assert "no keys are stored" in none.stderr


def test_a_variable_comes_before_a_stored_key(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Keys(here.parent / "home" / "posology").set("openai", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-variable")
    key = load_settings().credentials("openai").api_key
    assert key is not None
    assert key.get_secret_value() == "sk-variable"


@pytest.mark.parametrize("given", ["", "\n", "a b\n", "é\n"])
def test_what_is_no_key_is_refused(given: str) -> None:
    done = RUNNER.invoke(app, ["keys", "set", "openai"], input=given)
    assert done.exit_code == 3
    assert RUNNER.invoke(app, ["keys", "set", "nobody"], input="x\n").exit_code == 3


def test_a_keyring_is_used_and_asked_only_for_what_it_holds(tmp_path: Path) -> None:
    ring = Ring()
    keys = Keys(tmp_path, ring)
    assert keys.set("openai", SECRET) is Place.KEYRING
    assert SECRET not in (tmp_path / "keys.json").read_text()
    assert keys.get("openai") == SECRET
    ring.locked = True
    assert keys.get("anthropic") is None
    with pytest.raises(ConfigurationError):
        keys.get("openai")
    with pytest.raises(ConfigurationError):
        keys.set("openai", "x")
    ring.locked = False
    assert keys.remove("openai")
    assert (ring.held, keys.places()) == ({}, {})
    # the user has removed it in the keyring
    keys.set("openai", SECRET)
    ring.held.clear()
    with pytest.raises(ConfigurationError, match="keys set openai"):
        keys.get("openai")
    assert keys.remove("openai")


@pytest.mark.parametrize("text", ["{", "[]", '{"openai": 3}'])
def test_a_damaged_file_of_keys_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "keys.json"
    file.touch(0o600)
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"keys\.json"):
        Keys(tmp_path).get("openai")


def test_a_file_of_keys_that_others_can_read_is_refused(tmp_path: Path) -> None:
    keys = Keys(tmp_path)
    keys.set("openai", SECRET)
    (tmp_path / "keys.json").chmod(0o644)
    with pytest.raises(ConfigurationError, match="chmod 600"):
        keys.get("openai")


def test_each_setting_has_a_key_of_its_own() -> None:
    names: list[Any] = [key.variable for key in known_keys().values()]
    assert len(names) == len(set(names))
