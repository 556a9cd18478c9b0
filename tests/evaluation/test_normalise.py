import pytest

from rag_repro.evaluation import normalise


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The Beatles", "beatles"),
        ("  An  apple,\n a day!", "apple day"),
        ("U.S.", "us"),
        ("1990-91", "199091"),
        ("Theatre", "theatre"),  # "the" only as a word of its own
        ("O’Neil", "o’neil"),  # only ASCII punctuation, as the official script
        ("The The", "the the"),  # nothing would be left: kept
        ("!!!", "!!!"),
        ("", ""),
    ],
)
def test_squad(text, wanted):
    assert normalise.squad(text) == wanted


def test_erm4_keeps_articles_and_ends():
    assert normalise.erm4(" The  Beatles. ") == " the beatles "


def test_chinese_drops_both_widths_and_spaces():
    assert normalise.chinese("北京，中国。 (Beijing) ") == "北京中国beijing"
    assert normalise.answer("北京。") == "北京"
    assert normalise.answer("The end.") == "end"


def test_units():
    assert normalise.units("The quick, brown fox") == ["quick", "brown", "fox"]
    mixed = ["于", "2008", "年", "在", "beijing", "举", "行"]
    assert normalise.units("于2008年，在Beijing举行。") == mixed


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("I do not know.", "no", False),
        ("No, he did not.", "no", True),
        ("He lived in the U.S. then", "US", True),
        ("Born in 1912.", "1", False),
        ("于2008年举行", "2008", True),
        ("他住在北京市", "北京", True),
        ("他住在北京市", "上海", False),
        ("anything", "", False),
        ("anything", "  ", False),
    ],
)
def test_holds_whole_words(text, wanted, found):
    assert normalise.holds(text, wanted) is found
