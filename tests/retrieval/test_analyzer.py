from dataclasses import replace

import pytest

from rag_repro.retrieval import Analyzer, RetrievalError
from rag_repro.retrieval.analyzer import CHINESE, LONG_WORDS

PLAIN = Analyzer(stop_words=None)


def test_terms_in_order_with_repeats():
    assert PLAIN("The cat, the CAT!") == ["the", "cat", "the", "cat"]


@pytest.mark.parametrize(
    ("change", "terms"),
    [
        ({"lowercase": False}, ["Who", "founded", "the", "Café", "s", "4"]),
        ({"fold": True}, ["who", "founded", "the", "cafe", "s", "4"]),
        ({"pattern": LONG_WORDS}, ["who", "founded", "the", "café"]),
        ({"stop_words": "english"}, ["who", "founded", "café", "s", "4"]),
        ({"stop_words": "english_plus"}, ["founded", "café", "4"]),
        ({"stemmer": "english"}, ["who", "found", "the", "café", "s", "4"]),
    ],
)
def test_each_setting(change, terms):
    assert replace(PLAIN, **change)("Who founded the Café's 4?") == terms


def test_accents_composed_or_not_are_one_when_folded():
    folded = replace(PLAIN, fold=True)
    assert folded("Caf\u00e9") == folded("Cafe\u0301") == ["cafe"]


def test_stop_words_go_before_stemming():
    # "being" is no stop word of the short list, though its stem "be" is one.
    assert Analyzer(stemmer="english")("being") == ["be"]


def test_han_characters_one_by_one():
    assert replace(PLAIN, pattern=CHINESE)("北京2008年 games") == [
        "北",
        "京",
        "2008",
        "年",
        "games",
    ]


def test_fingerprint_changes_with_every_setting():
    changed = [
        Analyzer(),
        Analyzer(lowercase=False),
        Analyzer(fold=True),
        Analyzer(pattern=LONG_WORDS),
        Analyzer(stop_words=None),
        Analyzer(stop_words="english_plus"),
        Analyzer(stemmer="english"),
    ]
    assert len({a.fingerprint for a in changed}) == len(changed)
    assert Analyzer().fingerprint == Analyzer().fingerprint


def test_fingerprint_is_of_the_words_not_of_the_lists_name(monkeypatch):
    from bm25s import stopwords

    from rag_repro.retrieval import analyzer

    before = Analyzer().fingerprint
    monkeypatch.setattr(stopwords, "STOPWORDS_EN", (*stopwords.STOPWORDS_EN, "cat"))
    analyzer._stop_words.cache_clear()
    try:
        assert Analyzer().fingerprint != before
    finally:
        analyzer._stop_words.cache_clear()


def test_card_gives_the_analyzer_back():
    analyzer = Analyzer(fold=True, stemmer="english")
    assert Analyzer.from_card(analyzer.card) == analyzer


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stop_words": "englsh"}, "did you mean 'english'"),
        ({"stemmer": "englisch"}, "did you mean 'english'"),
        ({"pattern": r"(\w+"}, "no regular expression"),
        ({"pattern": r"(\w)\w*"}, r"\(\?:"),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(RetrievalError, match=says):
        Analyzer(**settings)
