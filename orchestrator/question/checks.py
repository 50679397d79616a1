"""Checks of a request against models, compressors, policies and settings, before anything is spent."""

from __future__ import annotations

from pathlib import Path

from orchestrator.settings import DEFAULT_POLICY, Settings
from posology.errors import InvalidQuery
from posology.llm.models.families import tier_of
from posology.llm.models.names import parse
from posology.llm.providers.local.kinds import GGUF
from posology.types import Lane
from strategies import STRATEGIES, takes_compressor


def check_file(model: str, settings: Settings) -> None:
    """Check that a request to the queue names no other file of a model than the settings do.

    Callers are not the machine's owner, and a worker would open and load the file at their word.

    Raises:
        InvalidQuery: it does.
    """
    if parse(model).provider == GGUF.name and model != settings.model:
        raise InvalidQuery(
            "a file of a model is the operator's choice: set POSOLOGY_MODEL to it, and send no model",
            field="model",
        )


def check_awaited(tier: Lane | None) -> None:
    """Check that an answer that someone waits for is not asked for in a batch.

    Raises:
        InvalidQuery: it is.
    """
    if tier is not None and tier_of(tier) == "batch":
        raise InvalidQuery(
            f"the tier {tier} may take days, and this waits for the answer: submit the question, or use flex",
            field="tier",
        )


def check_strategy(strategy: str | None, *, keep: float | None, compressor: str | None) -> None:
    """Check that a strategy exists, and takes the share of sentences and the compressor that are given.

    Raises:
        InvalidQuery: it does not.
    """
    if strategy is not None and strategy not in STRATEGIES:
        known = ", ".join(STRATEGIES)
        raise InvalidQuery(
            f"unknown strategy {strategy!r}: choose one of {known}", field="strategy"
        )
    if keep is not None and not takes_compressor(strategy):
        raise InvalidQuery(
            f"keep ({keep:g}) needs the strategy compressed (got {strategy}): add it, or set the "
            "policy router:keep=SHARE",
            field="keep",
        )
    if compressor is not None and strategy and not takes_compressor(strategy):
        raise InvalidQuery(
            f"compressor ({compressor}) needs the strategy compressed or a policy (got {strategy})",
            field="compressor",
        )


def check_judge(judge: str, model: str) -> None:
    """Check that a model can judge another one's answers.

    Raises:
        InvalidQuery: it is of another provider, whose calls the question does not pay for.
        UnknownModel: the provider is unknown, or the name has no provider.
    """
    provider = parse(model).provider
    if parse(judge).provider != provider:
        raise InvalidQuery(
            f"support_model ({judge}) must be of the same provider as the model that answers ({model}): name one of "
            f"{provider}:",
            field="support_model",
        )


def own_prompts(settings: Settings) -> str | None:
    """Return the digest of the configured templates, and load them; ``None``: the packaged ones. Blocking.

    Raises:
        BadFile: the folder or a template cannot be read or used.
    """
    if settings.prompts is None:
        return None
    from prompts.template import load_own

    return load_own(Path(settings.prompts).absolute())


def check_compressor(name: str | None, field: str) -> None:
    """Check that a compressor, the value of a field, exists.

    Raises:
        InvalidQuery: it does not.
    """
    if name is not None:
        from orchestrator.compressors import check

        check(name, field=field)


def check_policy(policy: str | None) -> None:
    """Check that a policy and its compressor exist, and its settings are valid.

    Raises:
        InvalidQuery: they do not, or are not.
    """
    if policy not in (None, DEFAULT_POLICY):
        from policies.specs import parse as parse_policy

        check_compressor(parse_policy(policy).compressor, "policy")
