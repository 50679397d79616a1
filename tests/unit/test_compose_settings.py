"""Every setting is handed to the services of docker-compose.yml that need it, and only there; what they need is mounted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.settings import Settings
from orchestrator.stack.options import API as API_COMMAND
from orchestrator.stack.options import CONNECTIONS
from posology.llm.providers.table import variables

ROOT = Path(__file__).resolve().parents[2]

#: services by what they do
EVERYONE = {"api", "worker-jobs", "worker-calls", "worker-ingest", "flower", "tenants", "ingest", "sync", "ask",
            "demo-notes", "demo", "ingest-uploads", "backup"}  # fmt: skip
WRITERS = {"ingest", "sync", "demo-notes", "ingest-uploads"}
INDEXED = {"api", "worker-jobs", "worker-ingest", "backup", *WRITERS}
#: services that read the index and write none
READERS = {"api", "worker-jobs", "backup"}
CALLERS = {"worker-jobs", "worker-calls", *WRITERS}
SUBMITTERS = {"api", "ask", "demo"}
DECIDERS = {"api", "worker-jobs"}
ENCODERS = (INDEXED | {"worker-calls"}) - {"backup"}
ASKERS = CALLERS | {"api"}
LEASERS = CALLERS | {"worker-ingest"}
BATCHERS = {"worker-jobs", "worker-calls"}
API = {"api"}
#: services that let files and fetches wait, and with the one that ingests them
OFFERERS = {"api", "worker-jobs"}
UPLOADS = {*OFFERERS, "ingest-uploads"}
FETCHERS = {"ingest-uploads"}
LOGGERS = {"api", "ingest-uploads", "worker-jobs", "worker-calls", "worker-ingest"}
#: settings of a container's own, or of no container, with the reason
NOWHERE = {
    "XDG_CACHE_HOME": "POSOLOGY_CACHE is set",
    "TIKTOKEN_CACHE_DIR": "the image has no tiktoken",
    "POSOLOGY_EMBEDDER_DEVICE": "the image has no accelerator",
    "POSOLOGY_HOME": "no embedded stack",
    "POSOLOGY_REDIS_MEMORY": "no embedded Redis",
    "POSOLOGY_LOCAL_IDLE": "the image has no llama.cpp",
    "POSOLOGY_API_KEY": "of `posology mcp` on a laptop",
    **dict.fromkeys(
        ("POSOLOGY_ZOTERO_KEY", "POSOLOGY_ZOTERO_URL", "POSOLOGY_ZOTERO_LOCAL_URL"),
        "a library of a person's own machine",
    ),
    "POSOLOGY_TENANT": "an option of commands",
    "POSOLOGY_TASK_EVENTS": "-E of the workers' commands",
    "POSOLOGY_WORKERS": "replicas of the workers' services",
    "POSOLOGY_WORKER_CONCURRENCY": "--concurrency of the workers' commands",
}
WANTED: Mapping[str, set[str]] = {
    "POSOLOGY_REDIS_URL": EVERYONE,
    "POSOLOGY_PRICES": {*CALLERS, *SUBMITTERS},
    "POSOLOGY_PROMPTS": {*CALLERS, *SUBMITTERS},
    **dict.fromkeys(
        ("POSOLOGY_MAX_TOKENS", "POSOLOGY_EFFORT", "POSOLOGY_TIER", "POSOLOGY_QUOTES", "POSOLOGY_SUPPORT", "POSOLOGY_SUPPORT_MODEL"), SUBMITTERS
    ),
    # watches submit, too
    "POSOLOGY_MAX_QUEUED": {*SUBMITTERS, "worker-jobs"},
    "POSOLOGY_MAX_STORED": {*SUBMITTERS, "worker-jobs"},
    "POSOLOGY_AUTH": {*API, "worker-jobs"},
    "POSOLOGY_MODEL": {*SUBMITTERS, "tenants"},
    "POSOLOGY_RETENTION_DAYS": {*SUBMITTERS, "worker-jobs", "ingest-uploads"},
    "POSOLOGY_UPLOADS": UPLOADS,
    "POSOLOGY_POLICY": {*SUBMITTERS, *DECIDERS},
    **dict.fromkeys(
        ("POSOLOGY_QTABLE", "POSOLOGY_CALIBRATION", "POSOLOGY_COMPRESSOR", "POSOLOGY_COMPRESSOR_MODEL", "POSOLOGY_COMPRESSION_SECONDS",
         "POSOLOGY_RERANKER", "POSOLOGY_MACHINE_DOLLARS_PER_HOUR", "POSOLOGY_MACHINE_UTILISATION", "POSOLOGY_FOLD",
         "POSOLOGY_EXPAND"), DECIDERS
    ),
    "POSOLOGY_EMBEDDER": {*ENCODERS, "tenants"},
    **dict.fromkeys(
        ("POSOLOGY_EMBEDDER_BACKEND", "POSOLOGY_EMBEDDER_PRECISION",
         "POSOLOGY_EMBEDDER_THREADS", "POSOLOGY_CACHE"), ENCODERS
    ),
    **dict.fromkeys(
        ("POSOLOGY_INDEX", "POSOLOGY_COLLECTIONS", "POSOLOGY_KEEP_VERSIONS", "POSOLOGY_MEMORY", "POSOLOGY_SELF_INFORMATION",
         "POSOLOGY_S3_ENDPOINT"),
        INDEXED,
    ),
    # the object storage's and Bedrock's
    **dict.fromkeys(
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION"), INDEXED | CALLERS
    ),
    "POSOLOGY_TOKEN_CODES": {"worker-ingest", *WRITERS},
    **dict.fromkeys(("POSOLOGY_ATTEMPTS", "POSOLOGY_NATIVE_SCHEMA"), ASKERS),
    **dict.fromkeys(
        ("POSOLOGY_READER", "POSOLOGY_READER_TOKENS", "POSOLOGY_CONCURRENCY", "POSOLOGY_CALL_TIMEOUT", "POSOLOGY_CALL_DEADLINE", "POSOLOGY_MIN_TOKENS_PER_SECOND",
         "POSOLOGY_STREAM", "POSOLOGY_OPENAI_LEGACY_MAX_TOKENS", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY",
         "OLLAMA_API_KEY", "OLLAMA_HOST", "LMSTUDIO_API_KEY", "LMSTUDIO_BASE_URL", "LLAMA_API_KEY", "LLAMACPP_BASE_URL",
         "VLLM_API_KEY", "VLLM_BASE_URL", "POSOLOGY_LOCAL_WINDOW",
         "ANTHROPIC_BASE_URL", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_DEPLOYMENTS",
         "OPENAI_API_VERSION", "AWS_BEARER_TOKEN_BEDROCK", "ANTHROPIC_BEDROCK_BASE_URL", "CLOUD_ML_REGION",
         "ANTHROPIC_VERTEX_PROJECT_ID", "ANTHROPIC_VERTEX_BASE_URL"), CALLERS
    ),
    "POSOLOGY_LEASE": LEASERS | API,
    "POSOLOGY_SHUTDOWN_GRACE": LEASERS,
    **dict.fromkeys(
        ("POSOLOGY_BATCH_WAIT", "POSOLOGY_BATCH_ROWS", "POSOLOGY_BATCH_POLL", "POSOLOGY_BATCH_LEASE"), BATCHERS
    ),
    **dict.fromkeys(("POSOLOGY_LOG_FORMAT", "POSOLOGY_LOG_LEVEL", "POSOLOGY_LOG_QUESTIONS",
                     "OTEL_EXPORTER_OTLP_ENDPOINT", "POSOLOGY_TRACE_TEXTS"), LOGGERS),
    **dict.fromkeys(("POSOLOGY_HOSTS", "POSOLOGY_METRICS_KEY", "POSOLOGY_CONSOLE_KEY", "POSOLOGY_CONSOLE_SECURE", "POSOLOGY_REPORTS",
                     "POSOLOGY_OIDC_ISSUER", "POSOLOGY_OIDC_CLIENT_ID", "POSOLOGY_OIDC_CLIENT_SECRET", "POSOLOGY_OIDC_AUDIENCE",
                     "POSOLOGY_OIDC_GROUPS", "POSOLOGY_OIDC_OPERATORS", "POSOLOGY_OIDC_CLAIM",
                     "POSOLOGY_UPLOAD_MIB", "POSOLOGY_TABLES_MIB"), API),
    **dict.fromkeys(("POSOLOGY_OPEN_UPLOADS", "POSOLOGY_UPLOADS_MIB", "POSOLOGY_FETCH_RECORDS", "POSOLOGY_FETCHES_PER_HOUR"), OFFERERS),
    "POSOLOGY_WEBHOOK_NETWORKS": {"api", *BATCHERS},
    **dict.fromkeys(("POSOLOGY_UPLOAD_UNPACKED_MIB", "POSOLOGY_UPLOAD_RECORDS", "POSOLOGY_UPLOAD_SECONDS",
                     "NCBI_API_KEY", "POSOLOGY_EMAIL", "POSOLOGY_EUTILS_URL", "POSOLOGY_EUROPEPMC_URL",
                     "POSOLOGY_CLINICALTRIALS_URL", "POSOLOGY_UNPAYWALL_URL"), FETCHERS),
}  # fmt: skip


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    loaded = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    found: dict[str, Any] = loaded["services"]
    return found


def test_every_setting_has_its_services(services: dict[str, Any]) -> None:
    known = {str(field.alias) for field in Settings.model_fields.values()} | set(variables())
    assert known == {*WANTED, *NOWHERE}
    found: dict[str, set[str]] = {}
    for name, service in services.items():
        if service["image"].startswith("posology"):
            for variable in service["environment"]:
                found.setdefault(variable, set()).add(name)
    assert found.pop("FLOWER_BASIC_AUTH") == {"flower"}
    # read by google-auth
    assert found.pop("GOOGLE_APPLICATION_CREDENTIALS") == CALLERS
    # read by uvicorn
    assert found.pop("FORWARDED_ALLOW_IPS") == API
    assert found == WANTED


def test_what_a_service_reads_is_mounted(services: dict[str, Any]) -> None:
    for name, service in services.items():
        mounted = {volume.split(":")[1] for volume in service.get("volumes", ())}
        given = service["environment"]
        if "POSOLOGY_INDEX" in given:
            assert "/index" in mounted, name
        if "POSOLOGY_CACHE" in given:
            assert "/cache" in mounted, name
        if {
            "POSOLOGY_PRICES",
            "POSOLOGY_PROMPTS",
            "POSOLOGY_EMBEDDER_BACKEND",
            "POSOLOGY_QTABLE",
        } & set(given):
            assert "/data" in mounted, name
        if name in DECIDERS:
            assert "/memory" in mounted, name
        assert ("/uploads" in mounted) == (name in UPLOADS), name
    # only those that write it may
    for name in INDEXED:
        (mount,) = [one for one in services[name]["volumes"] if one.startswith("index:")]
        assert mount.endswith(":ro") == (name in READERS), name


def test_redis_is_full_before_its_container_is(services: dict[str, Any]) -> None:
    redis = services["redis"]
    (full,) = re.findall(r"--maxmemory (\d+)mb", redis["command"][-1])
    assert redis["deploy"]["resources"]["limits"]["memory"] == "2G"
    assert 0.6 <= int(full) / 2_048 <= 0.7
    assert "--maxmemory-policy noeviction" in redis["command"][-1]


def test_uploads_fit_into_the_apis_memory(services: dict[str, Any]) -> None:
    from orchestrator.api.context import Limits

    (tmp,) = services["api"]["tmpfs"]
    size = int(re.fullmatch(r"/tmp:size=(\d+)m", tmp)[1])  # type: ignore[index]  # it matches
    assert size * 1024**2 >= Limits().batches * Limits().batch_bytes
    assert services["api"]["deploy"]["resources"]["limits"]["memory"] == "2G"


def test_connections_to_the_api_are_limited(services: dict[str, Any]) -> None:
    limit = ["--limit-concurrency", str(CONNECTIONS)]
    assert services["api"]["command"][-2:] == limit
    assert list(API_COMMAND[-2:]) == limit


def test_the_image_reads_pdf_and_buckets_calls_clouds_and_has_torch_for_cpus() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert '".[models,train,mcp,monitor,ocr,oidc,otel,pdf,s3,bedrock,vertex]"' in text
    (torch,) = [line for line in text.splitlines() if "download.pytorch.org" in line]
    assert torch.endswith("--index-url https://download.pytorch.org/whl/cpu torch")
    assert "--no-deps" in torch


def test_the_demonstration_asks_a_sample_question(services: dict[str, Any]) -> None:
    from posology.corpus.sample import questions

    demo, notes = services["demo"], services["demo-notes"]
    assert demo["profiles"] == notes["profiles"] == ["demo"]
    assert demo["command"][0] in {one.query.text for one in questions()}
    assert demo["depends_on"]["demo-notes"]["condition"] == "service_completed_successfully"
    path = Path(notes["command"][0])
    assert (ROOT / path.relative_to("/app")).is_file()
