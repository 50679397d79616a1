"""The configured retriever: encoder, re-ranker, expander, and folding of duplicate works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from anyio import to_thread

from orchestrator.models import Models
from orchestrator.question.embedding import remembering
from orchestrator.question.passages import passage_output
from orchestrator.rendering.words import safe
from orchestrator.settings import Settings
from posology.errors import BadFile, ConfigurationError, InvalidQuery, PassageNotFound
from posology.hub import require
from posology.index.embedders.options import Options
from posology.index.search.expansion import Abbreviations, Expander, Headings, Several
from posology.index.search.retriever import Retriever
from posology.index.store import Index
from posology.published.answers import PassageOutput, Source
from posology.published.literature import QuoteCheck, QuoteDifference, QuoteSearch
from posology.seams import Reranker, TokenCodec
from posology.text.quotes import DropReason, Span, locate
from posology.text.quoting.nearly import nearest
from posology.types import Pages


async def make_retriever(
    settings: Settings, models: Models, index: Index, *, reranked: bool = True
) -> Retriever:
    """Build the retriever of an index.

    Args:
        settings: name the re-ranker, the expander, and how works are folded.
        models: has the encoder.
        index: the index.
        reranked: whether the configured re-ranker orders the passages; otherwise the first stage does.

    Raises:
        EmbedderUnavailable: the encoder's files cannot be loaded.
        ModelUnavailable: the re-ranker's files cannot be loaded.
        ConfigurationError: the re-ranker or expander is unknown, or something that it needs is missing.
        IndexMismatch: another encoder made the index.
    """
    reranker = await to_thread.run_sync(make_reranker, settings, index) if reranked else None
    encoder = await to_thread.run_sync(lambda: remembering(models.embedder(), settings))
    expander = await to_thread.run_sync(make_expander, settings)
    return Retriever(
        index, encoder, reranker, fold=settings.fold, expander=expander, codec=lambda: _codec(index)
    )


def _codec(index: Index) -> TokenCodec | None:
    """Return the codec of an index; ``None``: it has none, or one that is not installed. Blocking: it loads a model."""
    if index.meta.codec is None:
        return None
    from strategies.compression.late.codec import LateCodec

    codec = LateCodec.packaged()
    return codec if codec.name == index.meta.codec else None


def make_expander(settings: Settings) -> Expander | None:
    """Build the expander of ``POSOLOGY_EXPAND``, which adds synonyms to a question; ``None``: not set. Blocking.

    Raises:
        ConfigurationError: the expander is unknown, or its file cannot be read.
    """
    expanders: list[Expander] = []
    for name in filter(None, (settings.expand or "").split(",")):
        kind, _, file = (part.strip() for part in name.partition(":"))
        if kind == "abbreviations" and not file:
            expanders.append(Abbreviations())
        elif kind == "mesh" and file:
            from posology.corpus.mesh import read_terms

            try:
                expanders.append(Headings(read_terms(Path(file))))
            except BadFile as error:
                raise ConfigurationError(f"POSOLOGY_EXPAND: {error}") from error
        else:
            raise ConfigurationError(
                f"POSOLOGY_EXPAND must be abbreviations, mesh:FILE, or both (got {name.strip()!r})"
            )
    return Several(expanders) if expanders else None


_HOW = (
    "set POSOLOGY_RERANKER to medcpt, medcpt:MODEL, pruner, nsp:MODEL, provence or provence:MODEL, where MODEL is a folder "
    "or a hub name"
)


def make_reranker(settings: Settings, index: Index) -> Reranker | None:
    """Build the re-ranker of ``POSOLOGY_RERANKER``; ``None``: not set. Blocking: it loads a model.

    Args:
        settings: name its kind, and after a colon its model.
        index: index of the passages to score.

    Raises:
        ConfigurationError: the re-ranker is unknown, the index lacks something that it needs, or its model does not
            load.
        DeviceUnavailable: an encoder's device (``POSOLOGY_EMBEDDER_DEVICE``) is not available.
    """
    if settings.reranker is None:
        return None
    kind, _, model = settings.reranker.partition(":")
    if kind not in RERANKERS:
        raise ConfigurationError(f"unknown re-ranker {settings.reranker!r}: {_HOW}")
    return RERANKERS[kind](model.strip(), index, settings.embedding)


def _medcpt(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    require("models", "medcpt")
    from posology.index.rerankers.medcpt import load

    return load(model, options)


def _nsp(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    from posology.index.rerankers.nsp import load

    return load(_named(model, "nsp"))


def _provence(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it reads texts alone
    from strategies.compression.parts import Parts
    from strategies.compression.provence import NAME, make_reranker

    return make_reranker(Parts(models={NAME: model} if model else {}))


def _pruner(model: str, index: Index, options: Options) -> Reranker:  # noqa: ARG001 - it runs no encoder
    from strategies.compression.late.codec import LateCodec
    from strategies.compression.late.pruner import LateReranker

    if model:
        raise ConfigurationError(
            f"the pruner has its own model and takes none (got {model!r}): {_HOW}"
        )
    # checked before anything is loaded
    if index.meta.codec is None or index.meta.codec != LateCodec.packaged().name:
        kept = f"those of {index.meta.codec}" if index.meta.codec else "none"
        raise ConfigurationError(
            f"the pruner needs token codes of its own codec, but the index has {kept}: "
            "ingest anew with POSOLOGY_TOKEN_CODES on, or choose another re-ranker (POSOLOGY_RERANKER)"
        )
    return LateReranker()


def _named(model: str, kind: str) -> str:
    if not model:
        raise ConfigurationError(f"the re-ranker {kind} needs a model: {_HOW}")
    return model


#: kind → function that builds it from its model's name, an index and the options of encoders
RERANKERS: Mapping[str, Callable[[str, Index, Options], Reranker]] = MappingProxyType(
    {"medcpt": _medcpt, "nsp": _nsp, "provence": _provence, "pruner": _pruner}
)


def read_passage(index: Index, passage: str, version: int | None = None) -> PassageOutput:
    """Return a passage in full. Blocking.

    Args:
        index: index of the passage.
        passage: its id, e.g. ``pmid:10051933``, or a PMID alone, which is what people copy from PubMed.
        version: number of the index version; ``None``: the newest.

    Raises:
        PassageNotFound: that version does not hold it.
        VersionGone: the index no longer keeps that version.
    """
    view, name = index.view_at(version), passage.strip()
    if "\0" in name:
        raise PassageNotFound(f"{view.version} does not hold it", index=index.name, passage=name)
    if name.isdecimal() and not view.digests([name]):
        name = f"pmid:{name}"
    (found,) = view.fetch([name])
    return passage_output(found, index=view.version)


#: passages that are compared with a quote, of those that share most words with it
COMPARED = 50
#: most places of a quote that are returned
PLACES = 10


def find_quote(index: Index, quote: str, version: int | None = None) -> QuoteSearch:
    """Find the passages that contain a quote or nearly do, retracted ones among them. Blocking.

    Args:
        index: the index.
        quote: a sentence or a few.
        version: number of the index version; ``None``: the newest.

    Raises:
        InvalidQuery: the quote has no words.
        VersionGone: the index no longer keeps that version.
    """
    if not quote.strip():
        raise InvalidQuery("the quote is empty: give a sentence or a part of one", field="quote")
    view = index.view_at(version)
    rows = view.bm25_rows(quote, COMPARED, retracted=True).ids
    passages = view.take(rows)
    checks = [
        quote_check(
            quote,
            Source.of(found.passage),
            found.passage.text,
            index=view.version,
            pages=found.passage.pages,
        )
        for found in (passages[row] for row in rows if row in passages)
    ]
    places = [one for one in checks if one.verified or one.reason != DropReason.NOT_FOUND]
    return QuoteSearch(
        quote=quote,
        places=tuple(sorted(places, key=_nearness)[:PLACES]),
        compared=len(checks),
        index=view.version,
    )


def _nearness(check: QuoteCheck) -> tuple[bool, bool, int]:
    """Return what orders the places of a quote: verified, then word for word but cut, then by how much differs."""
    changed = sum(len(one.quote) + len(one.passage) for one in check.differences)
    return not check.verified, check.reason == "differs", changed


def quote_check(
    quote: str, source: Source, text: str, *, index: str, pages: Pages | None = None
) -> QuoteCheck:
    """Compare a quote with a passage. Blocking.

    Args:
        quote: the quote.
        source: the passage.
        text: its text.
        index: name and version of its index.
        pages: places of its pages; ``None``: unknown.
    """
    place = _located(quote, text)
    span, reason = (place, None) if isinstance(place, Span) else (None, place.value)
    differences: tuple[QuoteDifference, ...] = ()
    if place is DropReason.NOT_FOUND and (near := nearest(quote, text)) is not None:
        span, reason = near.span, "differs"
        differences = tuple(
            QuoteDifference(quote=one.quote, passage=one.text) for one in near.differences
        )
    first, last = (None, None)
    if span is not None and pages is not None:
        first, last = pages.span(span.start, span.end)
    return QuoteCheck(
        passage=source,
        quote=quote,
        verified=isinstance(place, Span),
        reason=reason,
        wording=None if span is None else text[span.start : span.end],
        differences=differences,
        start=None if span is None else span.start,
        end=None if span is None else span.end,
        page=first,
        last_page=last,
        ocr=span is not None and pages is not None and pages.scanned(span.start, span.end),
        index=index,
    )


def _located(quote: str, text: str) -> Span | DropReason:
    """Find a quote, or else what of it is seen: models and people are shown texts without the rest."""
    exact = locate(quote, text)
    if exact is not DropReason.NOT_FOUND:
        return exact
    kept = [at for at, letter in enumerate(text) if safe(letter)]
    place = locate(safe(quote), "".join(safe(text[at]) for at in kept))
    if not isinstance(place, Span):
        return place
    return Span(start=kept[place.start], end=kept[place.end - 1] + 1)
