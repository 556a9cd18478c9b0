from dataclasses import replace
from unicodedata import normalize

import pytest

from rag_repro.retrieval import Analyzer, RetrievalError
from rag_repro.retrieval.analyzer import suited
from rag_repro.schema import Passage
from rag_repro.schema.dataset import Corpus

PLAIN = Analyzer(stop_words=None)

LONG_WORDS = r"\b\w\w+\b"


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


GRAMS = replace(PLAIN, grams=2)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("北京市2008年 Games", ["北", "北京", "京", "京市", "市", "2008", "年", "games"]),
        ("서울은 big", ["서", "서울", "울", "울은", "은", "big"]),
        ("とうタワー。", ["と", "とう", "う", "うタ", "タ", "タワ", "ワ", "ワー", "ー"]),
        ("ที่นี่", ["ที่", "ที่นี่", "นี่"]),  # with their marks
        ("दिल्ली में", ["दिल्ली", "में"]),  # words between blanks, whole
        ("", []),
    ],
)
def test_grams(text, terms):
    assert GRAMS(text) == GRAMS(normalize("NFD", text)) == terms


def test_more_grams_keep_the_other_settings():
    long = Analyzer(grams=3, pattern=LONG_WORDS, stop_words="english", stemmer="english")
    assert long("the 北京市 founded a") == ["北", "北京", "北京市", "京", "京市", "市", "found"]


ENGLISH = "A lighthouse stands on a small island in the north of the bay. "


@pytest.mark.parametrize(
    ("text", "grams"),
    [
        (ENGLISH, False),
        ("Der Müller wohnt in Köln, Пушкин в Москве, Όμηρος, القاهرة.", False),
        (ENGLISH * 4 + "李白", False),  # 2 of 254 characters
        (ENGLISH * 2 + "李白", True),
        ("北港灯塔由林海建造。", True),
        ("서울은 크다.", True),
        ("नई दिल्ली", True),
        (normalize("NFD", "Zoé Märtén spent her childhood in Sarnby."), True),
        ("!", False),
        ("", False),
    ],
)
def test_scripts_that_blanks_do_not_cut_get_grams(text, grams):
    for passage in (Passage("p", "", text), Passage("p", text, "")):
        assert suited(Corpus("c", (passage,))) == ({"grams": 2} if grams else {})


def test_the_default_card_does_not_tell_of_grams():
    # Fingerprints of stored records are of this card.
    assert Analyzer().fingerprint == "acb6b177f05a76be"
    assert "grams" not in Analyzer().card
    assert GRAMS.card["grams"] == 2


def test_fingerprint_changes_with_every_setting():
    changed = [
        Analyzer(),
        Analyzer(lowercase=False),
        Analyzer(fold=True),
        Analyzer(pattern=LONG_WORDS),
        Analyzer(stop_words=None),
        Analyzer(stop_words="english_plus"),
        Analyzer(stemmer="english"),
        Analyzer(grams=1),
        Analyzer(grams=2),
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


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"stop_words": "englsh"}, "did you mean 'english'"),
        ({"stemmer": "englisch"}, "did you mean 'english'"),
        ({"pattern": r"(\w+"}, "no regular expression"),
        ({"pattern": r"(\w)\w*"}, r"\(\?:"),
        ({"grams": -1}, "grams is -1"),
        ({"grams": "2"}, "grams is '2'"),
    ],
)
def test_refusals(settings, says):
    with pytest.raises(RetrievalError, match=says):
        Analyzer(**settings)
