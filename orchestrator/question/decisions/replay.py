"""Replays the decisions of jobs from their records, and reports differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from pydantic import ValidationError

from orchestrator.compressors import make_compressors
from orchestrator.prices import price_book
from orchestrator.question import qtables
from orchestrator.question.checks import own_prompts
from orchestrator.question.decider import ANSWERING, JUDGE, OWN_PROMPTS, REPAIR, Decider
from orchestrator.question.decisions.forms import (
    ChangeOutput,
    Replay,
    ReplayedDecision,
    ReplayedJob,
    ReplayOutput,
)
from orchestrator.question.embedding import Spend
from orchestrator.question.report import error_body
from orchestrator.question.request import JobRequest
from policies.router import recorded_quote
from policies.savings import recorded as recorded_saving
from posology.errors import DecisionChanged, JobNotFound, PosologyError, PromptsMismatch
from posology.types import Decision, QuoteForm, Retrieval, Rung, Situation
from prompts.template import form

if TYPE_CHECKING:
    from orchestrator.jobs.batches import Batches
    from orchestrator.jobs.store import JobStore
    from orchestrator.question.request import Request
    from orchestrator.service import Service
    from orchestrator.settings import Settings
    from posology.index.store import Index
    from posology.published.jobs import JobOutput
    from posology.seams import Policy

#: jobs of a batch a page
PAGE = 100
#: tolerances within which two numbers of features count as equal: processors round a question's vector differently
_RELATIVE, _ABSOLUTE = 1e-3, 1e-5
#: fields that the policy's caller adds
_OTHERS = frozenset({"versions", "then"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Present:
    """Present state that decisions are replayed with."""

    #: returns policies, with the loaded Q-table
    decider: Decider
    #: version of the prices; ``None``: unknown
    prices: str | None = None
    #: name and version of the index; ``None``: unknown
    index: str | None = None
    #: retrieves again; ``None``: features are of the record alone
    service: Service | None = None
    #: whether it retrieves from the newest index instead of the recorded version
    newest: bool = False
    #: name of the index's collection; ``None``: the default index
    collection: str | None = None


async def make_present(
    settings: Settings,
    index: Index | None,
    *,
    service: Service | None = None,
    newest: bool = False,
    collection: str | None = None,
) -> Present:
    """Return the present state of the configuration.

    Args:
        settings: the configuration.
        index: the index; ``None``: there is none, so a replay cannot say whether it has changed.
        service: retrieves again; ``None``: features are of the record alone.
        newest: whether it retrieves from the newest index instead of the recorded version.
        collection: name of the index's collection; ``None``: the default index.

    Raises:
        BadArtefact: the Q-table or the calibration cannot be read.
        BadFile: the templates cannot be read or used.
    """
    decider = await to_thread.run_sync(_decider, settings, index)
    return Present(
        decider=decider,
        prices=price_book(settings).version,
        index=None if index is None else await to_thread.run_sync(lambda: index.version),
        service=service,
        newest=newest,
        collection=collection,
    )


def _decider(settings: Settings, index: Index | None) -> Decider:
    table = qtables.configured(settings)
    own_prompts(settings)
    return Decider(
        default=settings.policy,
        table=table,
        compressors=make_compressors(settings),
        embedder=index.meta.embedder if index else None,
        calibration=qtables.configured_calibration(settings),
    )


class Replayer:
    """Replays jobs one after the other; keeps sums, not the jobs.

    Args:
        present: the present state.
        show: most jobs to list one by one.
    """

    def __init__(self, present: Present, *, show: int = 20) -> None:
        self._present = present
        self._show = show
        self._counts: Counter[Replay] = Counter()
        self._versions: Counter[str] = Counter()
        self._decisions = 0
        self._found: list[ReplayedJob] = []
        #: the first job
        self._first: ReplayedJob | None = None

    async def add(self, job: JobOutput) -> ReplayedJob:
        """Replay the decisions of a job."""
        return self._counted(await self._job(job))

    def missing(self, job: str) -> ReplayedJob:
        """Count a job that does not exist."""
        return self._counted(ReplayedJob(job=job, status=Replay.MISSING, policy=None, decisions=()))

    def output(self, seconds: float) -> ReplayOutput:
        """Return the sums of all jobs."""
        jobs = self._counts.total()
        found = self._found or ([self._first] if self._first and jobs == 1 else [])
        return ReplayOutput(
            jobs=jobs,
            decisions=self._decisions,
            counts={kind: self._counts[kind] for kind in Replay if self._counts[kind]},
            versions=dict(self._versions.most_common()),
            found=tuple(found),
            seconds=seconds,
        )

    def _counted(self, one: ReplayedJob) -> ReplayedJob:
        self._counts[one.status] += 1
        self._decisions += len(one.decisions)
        self._versions.update(c.name for d in one.decisions for c in d.versions)
        self._first = self._first or one
        if one.status is not Replay.SAME and len(self._found) < self._show:
            self._found.append(one)
        return one

    async def _job(self, job: JobOutput) -> ReplayedJob:
        if job.decision is None:
            return ReplayedJob(job=job.id, status=Replay.UNDECIDED, policy=None, decisions=())
        decision = job.decision.to(Decision)
        made = (decision,) if decision.then is None else (decision, decision.then)
        retrieval: Retrieval | None = None
        try:
            asked = JobRequest.model_validate(job.request)
            request, known = asked.as_settled(), asked.collection == self._present.collection
            policy = self._present.decider.policy(request)
            if self._present.service is not None:
                if not known:
                    raise ValueError("the job asked another index: give its own")
                made_on = None if self._present.newest else decision.versions.get("index")
                # nothing is spent: the vector that was bought for the job is stored
                kept = Spend(tenant=job.tenant)
                retrieval = await _retrieve(self._present.service, request, made_on, kept)
        except (PosologyError, ValidationError, ValueError) as error:
            found = tuple(_failed(one, error) for one in made)
        else:
            found = tuple(self._again(one, policy, retrieval, known=known) for one in made)
        return ReplayedJob(
            job=job.id, status=_status(found), policy=decision.policy, decisions=found
        )

    def _again(
        self, decision: Decision, policy: Policy, retrieval: Retrieval | None, *, known: bool
    ) -> ReplayedDecision:
        index = self._present.index if known else None
        index = index if retrieval is None else retrieval.index_version
        quotes: QuoteForm = (
            "copied" if f"prompt {form('answer', 'copied')}" in decision.versions else "sentences"
        )
        answering = f"prompt {form(ANSWERING[1], quotes)}" in decision.versions
        try:
            now = self._present.decider.versions(
                policy,
                decision,
                index=index,
                prices=self._present.prices,
                quotes=quotes,
                partitions="answer" if answering else "extract",
                repairs=f"prompt {REPAIR}" in decision.versions,
                judged=f"prompt {JUDGE}" in decision.versions,
                own=decision.versions.get(OWN_PROMPTS),
            )
        except PromptsMismatch as error:
            return _failed(decision, error)
        changed = tuple(_versions(decision.versions, now))
        try:
            features = () if retrieval is None else tuple(_features(decision, policy, retrieval))
            again = _decided(decision, policy, retrieval)
        except PosologyError as error:
            return _failed(decision, error, changed)
        return ReplayedDecision(
            dose=decision.dose,
            now=again.dose,
            differing=differing(decision, again),
            versions=changed,
            features=features,
            error=None,
        )


def differing(one: Decision, other: Decision) -> tuple[str, ...]:
    """Return the fields in which two decisions of a policy differ, without versions and ``then``."""
    return tuple(
        field.name
        for field in fields(Decision)
        if field.name not in _OTHERS and getattr(one, field.name) != getattr(other, field.name)
    )


def changed(out: ReplayOutput) -> DecisionChanged | None:
    """Return the error of a replay with differences; ``None``: there are none."""
    other, failed = out.counts.get(Replay.CHANGED, 0), out.counts.get(Replay.FAILED, 0)
    if not other and not failed:
        return None
    return DecisionChanged(
        f"of {out.jobs} jobs, {other} are decided differently now, and {failed} cannot be replayed from "
        "their records: check the changed versions",
        changed=other,
        failed=failed,
    )


async def each(
    store: JobStore,
    jobs: Iterable[str] | AsyncIterator[str],
    replayer: Replayer,
    *,
    tenant: str,
    tell: Callable[[ReplayedJob], None] = lambda _: None,
) -> None:
    """Replay jobs.

    Args:
        store: the job records.
        jobs: ids of jobs.
        replayer: replays them.
        tenant: name of their tenant.
        tell: called with the result of each job.

    Raises:
        StoreUnavailable: Redis is unreachable.
    """
    async for job in _ids(jobs):
        try:
            found = await store.get(job, tenant=tenant)
        except JobNotFound:
            tell(replayer.missing(job))
        else:
            tell(await replayer.add(found))


async def of_batch(batches: Batches, batch: str, *, tenant: str) -> AsyncIterator[str]:
    """Yield the ids of a batch's jobs, in the order of the rows.

    Raises:
        BatchNotFound: the tenant has no such batch.
        StoreUnavailable: Redis is unreachable.
    """
    after = -1
    while rows := await batches.rows(batch, tenant=tenant, after=after, limit=PAGE):
        for row in rows:
            if row.job is not None:
                yield row.job
        after = rows[-1].row


async def _ids(jobs: Iterable[str] | AsyncIterator[str]) -> AsyncIterator[str]:
    if isinstance(jobs, AsyncIterator):
        async for job in jobs:
            yield job
    else:
        for job in jobs:
            yield job


async def _retrieve(
    service: Service, request: Request, version: str | None, spend: Spend
) -> Retrieval:
    return await service.search(
        request.query,
        k=request.k,
        mode=request.mode,
        retracted=request.retracted,
        filters=request.filters,
        version=request.index_version or version,
        spend=spend,
    )


def _decided(decision: Decision, policy: Policy, retrieval: Retrieval | None) -> Decision:
    """Replay a decision from its record, or else from the retrieved passages."""
    try:
        return policy.replay(decision)
    except PosologyError:
        if retrieval is None:
            raise
        # the budget and the prices are those of the record
        return policy(
            replace(
                _situation(decision, retrieval),
                remaining=decision.remaining,
                quote=recorded_quote(decision),
                saving=lambda _: recorded_saving(decision.features),
            )
        )


def _situation(decision: Decision, retrieval: Retrieval) -> Situation:
    read = decision.features.get("tried") or 0
    return Situation(
        query=retrieval.query,
        retrieval=retrieval,
        tried=(Rung(passages=read, first=0, usage=None, refused=True),) if read else (),
    )


def _features(recorded: Decision, policy: Policy, retrieval: Retrieval) -> Iterable[ChangeOutput]:
    """Yield the features that differ from the record."""
    seen = policy(_situation(recorded, retrieval)).features
    # a compressor's cost does not depend on the passages; changed versions show if it changed
    names = {name for name in (*recorded.features, *seen) if not name.startswith("saving.")}
    for name in sorted(names):
        before, after = recorded.features.get(name), seen.get(name)
        if not _alike(before, after):
            yield ChangeOutput(name=name, recorded=before, now=after)


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(one == other)


def _versions(recorded: Mapping[str, str], now: Mapping[str, str]) -> Iterable[ChangeOutput]:
    for name in sorted({*recorded, *now}):
        # a version that is unknown now cannot have changed, except that of a removed part of the policy
        if name not in now and not name.startswith(("policy", "prompt")):
            continue
        # records from before rewriters' prompts were recorded do not have them
        if name not in recorded and name.startswith("prompt"):
            continue
        if recorded.get(name) != now.get(name):
            yield ChangeOutput(name=name, recorded=recorded.get(name), now=now.get(name))


def _status(found: Iterable[ReplayedDecision]) -> Replay:
    kinds = {_kind(one) for one in found}
    return next(kind for kind in (Replay.FAILED, Replay.CHANGED, Replay.SAME) if kind in kinds)


def _kind(one: ReplayedDecision) -> Replay:
    if one.error is not None:
        return Replay.FAILED
    # another index may return other passages, the same one must not
    moved = one.features and not any(change.name == "index" for change in one.versions)
    return Replay.CHANGED if one.differing or moved else Replay.SAME


def _failed(
    decision: Decision, error: Exception, changed: tuple[ChangeOutput, ...] = ()
) -> ReplayedDecision:
    told = error if isinstance(error, PosologyError) else PosologyError(f"its request: {error}")
    return ReplayedDecision(
        dose=decision.dose,
        now=None,
        differing=(),
        versions=changed,
        features=(),
        error=error_body(told, None),
    )
