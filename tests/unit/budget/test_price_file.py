from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from posology.budget.prices.book import PriceBook, load, packaged
from posology.errors import BadPrices, UnpricedModel
from posology.types import Usage
from tests.support.examples import examples

MILLION = 10**6
WHOLE = Usage(input=MILLION, output=MILLION)
count = st.integers(min_value=0, max_value=10**6)


def _load(folder: Path, text: str) -> PriceBook:
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return load(path)


def test_the_documented_example_is_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "prices.md").read_text(encoding="utf-8")
    book = _load(tmp_path, page.split("```toml\n", 1)[1].split("```", 1)[0])
    assert book.cost("openai:my-model", Usage(input=10**5, output=10**5)) == Decimal("0.35")
    assert book.cost("openai:my-model", WHOLE) == Decimal("5.5")
    assert book.cost("openai:my-model", Usage(input=10**5), "batch") == Decimal("0.025")
    assert book.free("openai:qwen3-8b")
    assert book.cost("offline:extractive", WHOLE) == packaged().cost("openai:gpt-6-luna", WHOLE)
    assert book.strict == {"openai:my-model"}
    assert book.cost("azure:gpt-6-luna", WHOLE) == packaged().cost("openai:gpt-6-luna", WHOLE)


def test_a_factor_holds_for_the_table_s_prices_alone(tmp_path: Path) -> None:
    plain = packaged()
    book = _load(
        tmp_path,
        '[factors]\nVertex = "1"\nopenai = "0.9"\n[models."openai:own"]\ninput = 1\noutput = 1\n'
        '[shadow]\n"offline:extractive" = "vertex:claude-haiku-5-5"\n',
    )
    listed = plain.cost("anthropic:claude-haiku-5-5", WHOLE)
    assert listed is not None
    assert plain.cost("vertex:claude-haiku-5-5", WHOLE) == listed * Decimal("1.1")
    assert book.cost("vertex:claude-haiku-5-5", WHOLE) == listed
    assert book.cost("offline:extractive", WHOLE) == listed
    assert book.cost("openai:own", WHOLE) == 2
    for model, factor in {"openai:gpt-6-luna": "0.9", "vertex:claude-opus-5-5": "1"}.items():
        maker = model.replace("vertex", "anthropic")
        base = plain.worst(maker, input_tokens=1_000, output_tokens=1_000)
        here = book.worst(model, input_tokens=1_000, output_tokens=1_000)
        assert here == base * Decimal(factor)


def test_own_prices_come_before_the_table(tmp_path: Path) -> None:
    book = _load(tmp_path, '[models."openai:GPT-4o-mini"]\ninput = "0.3"\noutput = 2\n')
    assert book.cost("openai:gpt-4o-mini", WHOLE) == Decimal("2.3")
    assert book.cost("openai:gpt-4o", WHOLE) == packaged().cost("openai:gpt-4o", WHOLE)
    # unlike the packaged price, its own says nothing of a batch
    assert book.cost("openai:gpt-4o-mini", WHOLE, "batch") is None


def test_tiers_are_shares_of_the_standard_price(tmp_path: Path) -> None:
    book = _load(
        tmp_path,
        '[models."openai:x"]\ninput = 2\noutput = 4\nflex = "0.5"\nbatch = "0.25"\npriority = "1.75"\n',
    )
    costs = [book.cost("openai:x", WHOLE, tier) for tier in ("flex", "batch", "priority")]
    assert costs == [Decimal(3), Decimal("1.5"), Decimal("10.5")]
    assert book.cost("openai:x", WHOLE, "unknown") is None
    standard = book.worst("openai:x", input_tokens=10, output_tokens=10)
    assert book.worst("openai:x", input_tokens=10, output_tokens=10, tier="flex") == standard
    assert book.worst("openai:x", input_tokens=10, output_tokens=10, tier="batch") == standard / 4


def test_the_version_tells_files_apart(tmp_path: Path) -> None:
    one = _load(tmp_path, '[models."openai:x"]\ninput = 1\noutput = 1\n')
    other = _load(tmp_path, '[models."openai:x"]\ninput = 1\noutput = 2\n')
    assert one.version != other.version
    for book in (one, other):
        table, _, digest = book.version.partition(" + overrides ")
        assert table == packaged().version
        assert len(digest) == 8


def test_what_has_no_price_of_its_own_costs_what_input_does_but_output_is_unknown(
    tmp_path: Path,
) -> None:
    book = _load(tmp_path, '[models."openai:x"]\ninput = "1.5"\ncache_write_5m = 2\n')
    assert book.cost("openai:x", Usage(cache_read=MILLION)) == Decimal("1.5")
    assert book.cost("openai:x", Usage(cache_write_1h=MILLION)) == Decimal(2)
    assert book.cost("openai:x", Usage(output=1)) is None
    with pytest.raises(UnpricedModel):
        book.check("openai:x")


def test_a_tier_takes_from_the_one_before_what_it_does_not_say(tmp_path: Path) -> None:
    book = _load(
        tmp_path,
        """
[models."openai:x"]
input = 1
output = 2
cache_read = "0.5"
[[models."openai:x".tiers]]
above = 1000
input = 3
[[models."openai:x".tiers]]
above = 2000
output = "0.1"
""",
    )
    assert book.cost("openai:x", Usage(input=1000)) == Decimal("0.001")
    assert book.cost("openai:x", Usage(input=1001)) == Decimal("0.003003")
    assert book.cost("openai:x", Usage(input=501, cache_read=500)) == Decimal("0.001753")
    assert book.cost("openai:x", Usage(input=2001, output=10)) == Decimal("0.006004")
    # the longest input is not the dearest: below the last tier output costs twenty times as much
    worst = book.worst("openai:x", input_tokens=2001, output_tokens=10**6)
    assert worst == Decimal("2.006")


def test_local_models_and_whole_providers_may_be_declared_free(tmp_path: Path) -> None:
    book = _load(
        tmp_path,
        '[free]\nmodels = ["openai:llama"]\nproviders = ["anthropic"]\n'
        '[models."anthropic:dear"]\ninput = 1\noutput = 1\n',
    )
    assert book.free("openai:llama")
    assert book.free("openai:LLAMA ")
    assert book.cost("openai:llama", None) == 0
    assert not book.free("openai:llama-2")
    assert book.free("anthropic:anything")
    assert not book.free("anthropic:dear")
    assert book.free("offline:extractive")


@pytest.mark.parametrize(
    "model", ["ollama:qwen3:8b", "lmstudio:m", "llamacpp:m", "vllm:org/m", "gguf:/models/m.gguf"]
)
def test_local_models_are_free_unless_they_are_shadowed(model: str, tmp_path: Path) -> None:
    book = PriceBook()
    assert book.free(model)
    assert book.cost(model, None) == book.worst(model, input_tokens=9, output_tokens=9) == 0
    shadowed = _load(tmp_path, f'[shadow]\n"{model}" = "openai:gpt-4o-mini"\n')
    assert not shadowed.free(model)
    assert shadowed.cost(model, WHOLE) == Decimal("0.75")


def test_a_shadowed_model_is_billed_as_another(tmp_path: Path) -> None:
    book = _load(tmp_path, '[shadow]\n"offline:extractive" = "openai:gpt-4o-mini"\n')
    assert not book.free("offline:extractive")
    assert book.cost("offline:extractive", WHOLE) == Decimal("0.75")
    assert book.cost("offline:extractive", None) is None
    assert book.worst("offline:extractive", input_tokens=MILLION, output_tokens=0) == Decimal(
        "0.15"
    )


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[models", None),
        ("[modles]", "modles"),
        ("models = 3", "models"),
        ("[bounds]\nloose = []", "bounds.loose"),
        ('[models."openai:x"]\noutput = 1', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = 0.15\noutput = 1', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = "-1"', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = -1', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = true', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = "NaN"', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = "1e3"', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = "9999999"', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = "$1"', 'models."openai:x".input'),
        ('[models."openai:x"]\ninput = 1\nout = 1', 'models."openai:x".out'),
        ('[models."openai:x"]\ninput = 1\nbatch = 2', 'models."openai:x".batch'),
        ('[models."openai:x"]\ninput = 1\nflex = "1.1"', 'models."openai:x".flex'),
        ('[models."openai:x"]\ninput = 1\npriority = 101', 'models."openai:x".priority'),
        ('[models."openai:x"]\ninput = 1\ntiers = 2', 'models."openai:x".tiers'),
        (
            '[models."openai:x"]\ninput = 1\ntiers = [{above = "1"}]',
            'models."openai:x"."tiers[0]".above',
        ),
        (
            '[models."openai:x"]\ninput = 1\ntiers = [{above = 9}, {above = 9}]',
            'models."openai:x"."tiers[1]".above',
        ),
        (
            '[models."openai:x"]\ninput = 1\ntiers = [{above = 9, batch = 1}]',
            'models."openai:x"."tiers[0]".batch',
        ),
        ("[models.x]\ninput = 1", "models.x"),
        ('[models."openai:"]\ninput = 1', 'models."openai:"'),
        ('[models]\n"openai:x" = 1', 'models."openai:x"'),
        ('[models."openai:x"]\ninput = 1\n[models."openai:X"]\ninput = 2', "models"),
        ('[free]\nmodels = "openai:x"', "free.models"),
        ('[free]\nmodels = ["x"]', "free.models"),
        ("[free]\nproviders = [1]", "free.providers"),
        ('[bounds]\nstrict = ["x"]', "bounds.strict"),
        ('[factors]\nazure = "0"', "factors.azure"),
        ("[factors]\nazure = 1.1", "factors.azure"),
        ('[factors]\nazure = "101"', "factors.azure"),
        ('[shadow]\n"openai:x" = "gpt"', 'shadow."openai:x"'),
        ('[shadow]\n"openai:x" = 1', 'shadow."openai:x"'),
        # billed as what is itself billed as another, as itself, as nothing, as what has no price
        (
            '[shadow]\n"openai:x" = "openai:y"\n"openai:y" = "openai:gpt-4o"',
            'shadow."openai:x"',
        ),
        ('[shadow]\n"openai:x" = "openai:x"', 'shadow."openai:x"'),
        ('[shadow]\n"openai:x" = "offline:extractive"', 'shadow."openai:x"'),
        ('[shadow]\n"openai:x" = "openai:no-such"', 'shadow."openai:x"'),
        ('[free]\nmodels = ["openai:x"]\n[models."openai:x"]\ninput = 1', None),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, key: str | None) -> None:
    with pytest.raises(BadPrices) as caught:
        _load(tmp_path, text)
    assert caught.value.key == key
    assert str(caught.value).startswith(str(tmp_path / "prices.toml"))


def test_a_float_is_told_how_to_be_written(tmp_path: Path) -> None:
    with pytest.raises(BadPrices, match=r'as a string, "0\.15"'):
        _load(tmp_path, '[models."openai:x"]\ninput = 0.15\n')


def test_a_file_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    for path in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(BadPrices) as caught:
            load(path)
        assert caught.value.path == str(path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9")
    with pytest.raises(BadPrices, match="TOML"):
        load(tmp_path / "latin.toml")


@st.composite
def _files(draw: st.DrawFn) -> str:
    def price() -> str:
        return format(Decimal(draw(st.integers(0, 10**6))).scaleb(-4), "f")

    buckets = ("cache_read", "cache_write_5m", "cache_write_1h")
    lines = ['[models."openai:x"]', f'input = "{price()}"', f'output = "{price()}"']
    lines += [f'{b} = "{price()}"' for b in buckets if draw(st.booleans())]
    for above in sorted(draw(st.sets(st.integers(1, 2 * 10**6), max_size=3))):
        lines += ['[[models."openai:x".tiers]]', f"above = {above}"]
        lines += [
            f'{b} = "{price()}"' for b in ("input", "output", *buckets) if draw(st.booleans())
        ]
    return "\n".join(lines)


@given(
    _files(),
    st.builds(
        Usage,
        input=count,
        cache_read=count,
        cache_write_5m=count,
        cache_write_1h=count,
        output=count,
        reasoning=count,
    ),
    count,
    count,
)
@examples(50)
def test_the_worst_case_bounds_every_usage_under_any_prices(
    tmp_path: Path, text: str, usage: Usage, more: int, longer: int
) -> None:
    book = _load(tmp_path, text)
    cost = book.cost("openai:x", usage)
    assert cost is not None
    read, said = usage.total_input + more, usage.total_output + longer
    worst = book.worst("openai:x", input_tokens=read, output_tokens=said)
    assert cost <= worst
    assert worst <= book.worst("openai:x", input_tokens=read + 1, output_tokens=said + 1)
