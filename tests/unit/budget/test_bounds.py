from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from posology.budget.bounds import openai_tokens
from posology.budget.bounds.calls import NEWER, PER_CALL, PER_MESSAGE, CallBound
from posology.budget.bounds.openai_tokens import EncodingFile
from posology.corpus import sample
from posology.hub import published
from posology.text.bounds import bytes_bound, words_bound
from posology.text.tokens import wordpiece_counter
from posology.types import Call
from prompts.answer import AnswerReply
from tests.support.calls import a_call, asks
from tests.support.examples import examples
from tests.support.growth import MOST, growth
from tests.support.held import held_after

FOLDER = published()
VOCABULARY = (FOLDER / "vocab.txt").read_text("utf-8").splitlines()
WORDS = [entry for entry in VOCABULARY if re.fullmatch("[a-z]{2,}", entry)]
WORDPIECES = wordpiece_counter(FOLDER / "tokenizer.json")
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
anything = st.text(st.characters(exclude_categories=["Cs"]))
#: what stands between words, none of it a letter
between = st.sampled_from([" ", "  ", "\n", ", ", "-", " (", "\u200b", " 5 ", "\U0001f600", "; "])


def _notes() -> list[str]:
    with sample.notes_file() as path:
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [row["text"] for row in rows]


NOTES = _notes()


@pytest.fixture(scope="module")
def trained() -> Tokenizer:
    """Knows the sample corpus and English words, as a provider's tokenizer knows what it reads."""

    def texts() -> Iterator[str]:
        yield from NOTES * 4
        for place, word in enumerate(WORDS, 1):
            often = max(2, 20_000 // place)
            yield f" {word}" * often + f" {word.capitalize()}\n{word}" * max(2, often // 4)

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(GPT2), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        texts(),
        trainers.BpeTrainer(vocab_size=100_000, show_progress=False, initial_alphabet=alphabet),
    )
    return made


def _count(tokenizer: Tokenizer, text: str) -> int:
    return len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("", 0),
        (" the", 1),
        ("the", 2),
        (" The", 2),
        ("the patients were treated with", 6),
        # digits, capitals, other scripts, gibberish and punctuation by their bytes
        (" 1234", 5),
        (" COPD", 5),
        (" pH", 3),
        ("β", 2),
        ("中文", 6),
        ("\U0001f600", 4),
        ("xqzkjw", 6),
        ("...", 3),
        # letters that are part of something else are no word
        (" the5", 5),
        (" naïve", 8),
        # decomposed, it is five letters and a mark: no less is assumed than the longest form
        ("é", 3),
        # a ligature that stands for 18 letters
        ("\ufdfa", 33),
        # a number has its bytes, and what only begins with one is a word of its own
        ("12345", 5),
        ("12ab", 4),
        ("1 2 the", 4),
    ],
)
def test_what_is_counted(text: str, bound: int) -> None:
    assert words_bound(text) == bound


@given(anything)
@example("ﷺ" * 20)
@example("\U0001d400" * 20)
def test_it_is_never_more_than_the_bytes(text: str) -> None:
    assert words_bound(text) <= bytes_bound(text)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert bytes_bound(text) >= len(unicodedata.normalize(form, text).encode())


@given(st.text(st.characters(min_codepoint=0, max_codepoint=127)))
def test_the_bytes_of_ascii_are_its_length(text: str) -> None:
    assert bytes_bound(text) == len(text)


def test_halves_of_characters_are_counted() -> None:
    assert words_bound("a \ud800") >= 4


@given(st.lists(st.sampled_from(WORDS) | st.sampled_from(NOTES) | anything, max_size=8), between)
@examples(50)
def test_it_bounds_the_offline_reader_s_own_count(parts: list[str], separator: str) -> None:
    text = separator.join(parts)
    assert words_bound(text) >= WORDPIECES(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(WORDS) | st.sampled_from(NOTES) | anything, between), max_size=8
    )
)
@examples(50)
def test_it_bounds_a_tokenizer_that_knows_the_words(
    trained: Tokenizer, parts: list[tuple[str, str]]
) -> None:
    text = "".join(part + separator for part, separator in parts)
    assert words_bound(text) >= _count(trained, text)


def test_no_word_alone_is_over_its_bound(trained: Tokenizer) -> None:
    over = [
        text
        for word in WORDS
        for text in (
            f" {word}",
            word,
            f" {word.capitalize()}",
            word.upper(),
        )
        if words_bound(text) < _count(trained, text)
    ]
    assert not over


def test_english_is_bounded_by_far_less_than_its_bytes(trained: Tokenizer) -> None:
    text = "\n".join(NOTES)
    assert words_bound(text) < bytes_bound(text) / 2
    assert words_bound(text) < 2 * _count(trained, text)


@pytest.mark.data
def test_it_bounds_real_abstracts(trained: Tokenizer, shared_data: Path) -> None:
    pool = shared_data / "pool.jsonl.gz"
    if not pool.exists():
        pytest.skip(f"no {pool}")
    with gzip.open(pool, "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line, _ in zip(lines, range(500), strict=False)]
    counted = [one.ids for one in trained.encode_batch(texts)]
    over = [t for t, ids in zip(texts, counted, strict=True) if words_bound(t) < len(ids)]
    assert not over


@pytest.mark.parametrize("text", [" ".join(NOTES), "1" * 100])
def test_it_takes_time_in_proportion(text: str) -> None:
    assert growth(lambda n: words_bound(text * n), 20) < MOST


@pytest.mark.parametrize("new", ["case {0}", "trial {0:06x}e", "NCT{0:08}", "{0}mg"])
def test_new_numbers_and_ids_leave_nothing_in_memory(new: str) -> None:
    words_bound(new.format(0))

    def count() -> None:
        for number in range(2_000):
            words_bound(new.format(number))

    held = held_after(count)
    # kept, each would take 60 bytes or more
    assert held < 20_000


def _call(model: str = "anthropic:claude-sonnet-4-5", *contents: str) -> Call:
    return a_call(model=model, messages=asks(*contents))


def test_a_call_is_its_messages_and_what_is_set_around_them() -> None:
    bound = CallBound()
    texts = ("the patients were treated", "the dose of warfarin")
    call = _call("anthropic:claude-sonnet-4-5", *texts)
    assert bound(call) == sum(map(words_bound, texts)) + 2 * PER_MESSAGE + PER_CALL


def test_a_structured_reply_s_form_is_input_too() -> None:
    plain = _call("openai:x", "the dose")
    formed = replace(plain, schema=AnswerReply)
    form = len(json.dumps(AnswerReply.model_json_schema(), separators=(",", ":")))
    assert CallBound()(formed) >= CallBound()(plain) + form
    assert CallBound(native_schema=False)(formed) == CallBound()(plain)


def test_a_model_may_be_bounded_by_bytes() -> None:
    bound = CallBound(strict={"openai:gpt-4o"})
    text = "the patients were treated"
    assert bound(_call("openai:GPT-4o ", text)) == len(text) + PER_MESSAGE + PER_CALL
    assert bound(_call("openai:unheard-of", text)) == len(text) + PER_MESSAGE + PER_CALL
    assert bound(_call("openai:gpt-4.1", text)) < len(text) / 2 + PER_MESSAGE + PER_CALL


@given(anything)
@examples(50)
def test_a_newer_tokenizer_may_count_a_third_more(text: str) -> None:
    older, newer = (
        CallBound()(_call(model, text)) - PER_MESSAGE - PER_CALL
        for model in ("anthropic:claude-sonnet-4-5", "anthropic:claude-haiku-5-5")
    )
    assert newer == min(bytes_bound(text), math.ceil(NEWER * older))


@given(st.lists(anything, max_size=3))
def test_no_call_is_bounded_by_more_than_its_bytes_and_the_constants(texts: list[str]) -> None:
    bound = CallBound()(_call("openai:x", *texts))
    assert bound <= sum(map(bytes_bound, texts)) + len(texts) * PER_MESSAGE + PER_CALL


@pytest.fixture
def encoding(tmp_path: Path) -> EncodingFile:
    """Bytes and two merges, kept as tiktoken keeps its own."""
    entries = [bytes([value]) for value in range(256)] + [b"th", b"the"]
    content = b"".join(
        base64.b64encode(entry) + b" %d\n" % rank for rank, entry in enumerate(entries)
    )
    file = EncodingFile(
        address="https://example.invalid/tiny.tiktoken",
        digest=hashlib.sha256(content).hexdigest(),
        pattern=r" ?\p{L}+|\s+|[^\s\p{L}]+",
    )
    file.path(tmp_path).write_bytes(content)
    return file


def test_a_file_of_tiktoken_s_is_counted_by(encoding: EncodingFile, tmp_path: Path) -> None:
    count = openai_tokens.load(encoding, tmp_path)
    assert count is not None
    assert count("the") == 1
    assert count(" the cat") == 6
    assert count("<|endoftext|>") == 13
    assert count("\ud800") >= 1


def test_it_is_the_count_of_tiktoken_itself(encoding: EncodingFile, tmp_path: Path) -> None:
    import tiktoken

    ranks = {bytes([value]): value for value in range(256)} | {b"th": 256, b"the": 257}
    other = tiktoken.Encoding(
        "tiny", pat_str=encoding.pattern, mergeable_ranks=ranks, special_tokens={}
    )
    count = openai_tokens.load(encoding, tmp_path)
    assert count is not None
    for note in NOTES[:10]:
        assert count(note) == len(other.encode_ordinary(note))


def test_a_file_that_is_not_there_or_not_the_one_is_not_used(
    encoding: EncodingFile, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert openai_tokens.load(encoding, tmp_path / "empty") is None
    other = tmp_path / "other"
    other.mkdir()
    encoding.path(other).write_bytes(b"YQ== 0\n")
    assert openai_tokens.load(encoding, other) is None
    # unlike tiktoken's loader, which removes such a file and downloads another
    assert encoding.path(other).exists()


def test_the_encodings_are_those_of_tiktoken() -> None:
    source = Path(pytest.importorskip("tiktoken_ext.openai_public").__file__).read_text("utf-8")
    for file in openai_tokens.ENCODINGS.values():
        assert f'"{file.address}"' in source
        assert file.digest in source
    cl100k = openai_tokens.ENCODINGS["cl100k_base"].pattern
    assert cl100k in source


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("gpt-4o-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("ft:gpt-4o-mini:org::id", "o200k_base"),
        ("no-such-model", None),
    ],
)
def test_models_have_their_encodings(name: str, encoding: str | None) -> None:
    assert openai_tokens.encoding_of(name) == encoding


def test_without_the_file_openai_s_models_are_bounded_like_others(tmp_path: Path) -> None:
    text = "the patients were treated"
    bound = CallBound(openai_files=tmp_path)
    assert bound(_call("openai:gpt-4o", text)) == bound(_call("anthropic:claude-sonnet-4-5", text))


def test_with_the_file_openai_s_models_are_counted(
    encoding: EncodingFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_tokens, "ENCODINGS", {"o200k_base": encoding})
    bound = CallBound(openai_files=tmp_path)
    assert bound(_call("openai:gpt-4o", "xqz the")) == 3 + 2 + PER_MESSAGE + PER_CALL
    long = "the " * 300_000
    assert bound(_call("openai:gpt-4o", long)) == len(long) + PER_MESSAGE + PER_CALL
    strict = CallBound(openai_files=tmp_path, strict={"openai:gpt-4o"})
    assert strict(_call("openai:gpt-4o", "xqz the")) == 7 + PER_MESSAGE + PER_CALL
