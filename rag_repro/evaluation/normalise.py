"""Bring two strings to a form in which they can be compared.

`squad` is what nearly everyone uses, `erm4` what ERM4's released scorer does,
`chinese` what LongBench does to DuReader's answers. `answer` picks between
the first and the last by looking at the text.

Two strings that are compared are read alike, whatever scripts they mix: where one is looked
for in the other, as the wanted one asks; where their units are counted, as Chinese if either
is. All compare text in the normal form NFC.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache
from unicodedata import normalize

import regex

from rag_repro.words import UNSPACED

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_HAN = regex.compile(r"([\p{Han}\u3000-\u303f\uff00-\uffef])")  # and marks of full width
_UNSPACED = regex.compile(UNSPACED, regex.V1)
# A letter with its marks, or a mark of full width.
_WIDE = regex.compile(rf"\s*({UNSPACED}\p{{M}}*|[\u3000-\u303f\uff00-\uffef])\s*", regex.V1)
_NO_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
# LongBench's list of full-width marks (metrics.py, normalize_zh_answer).
_WIDE_PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏《〈〉"
)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation + _WIDE_PUNCTUATION)


@lru_cache(maxsize=8192)
def squad(text: str) -> str:
    """Lower case, no ASCII punctuation, no a/an/the, single spaces.

    SQuAD's `normalize_answer`, used word for word by HotpotQA, 2Wiki, MuSiQue,
    Adaptive-RAG (so DR-RAG), DRAGIN and LongBench (so R²AG). Punctuation is
    dropped, not replaced by a space: "U.S." is "us", "1990-91" is "199091".

    One difference: where that leaves nothing ("The The" or "!!!") the
    lower-cased text is kept, since an empty answer is contained in every
    prediction and would always score.
    """
    lower = normalize("NFC", text).lower()
    bare = _ARTICLES.sub(" ", lower.translate(_NO_ASCII_PUNCTUATION))
    return " ".join(bare.split()) or " ".join(lower.split())


def erm4(text: str) -> str:
    """Lower case, no ASCII punctuation, runs of white space as one space.

    ERM4's release (`evaluation.py`): articles stay, ends are not stripped.
    """
    lower = normalize("NFC", text).lower()
    return re.sub(r"\s+", " ", lower.translate(_NO_ASCII_PUNCTUATION))


def chinese(text: str) -> str:
    """Lower case, no punctuation of either width, no white space at all."""
    return "".join(_unmarked(text).split())


@lru_cache(maxsize=8192)
def is_unspaced(text: str) -> bool:
    """Whether it is read as Chinese: it holds a Chinese character, or at least half of its letters
    are of another script without blanks between words, as kana or Thai."""
    if text.isascii():
        return False
    letters = sum(map(str.isalpha, text))
    return is_chinese(text) or 0 < letters <= 2 * len(_UNSPACED.findall(text))


def is_chinese(text: str) -> bool:
    """Whether the text holds at least one Chinese character."""
    return regex.search(r"\p{Han}", text) is not None


def answer(text: str) -> str:
    """`chinese` where the text is unspaced, else `squad`."""
    return chinese(text) if is_unspaced(text) else squad(text)


def units(text: str, beside: str = "") -> list[str]:
    """What token scores count: words of `squad`, or Chinese characters.

    LongBench cuts Chinese into words with jieba; we count characters (of Thai and
    its like: with their marks), which needs no dictionary. A run of Latin letters
    or digits inside Chinese text is one unit.

    beside: the text that this one is compared with. Where it is Chinese, marks of full width
    go here too.
    """
    if is_unspaced(text):
        return _apart(_unmarked(text))
    return _apart(_unmarked(squad(text))) if is_unspaced(beside) else squad(text).split()


def size(text: str) -> int:
    """Words between blanks; of text with Chinese characters these, and the runs between them."""
    if text.isascii() or not is_unspaced(text):
        return len(text.split())
    if is_chinese(text):
        return len(_HAN.sub(r" \1 ", _unmarked(text)).split())
    return len(units(text))


def contains(text: str, wanted: str) -> bool:
    """Whether the characters of `wanted` occur in `text` once both are normalised.

    Never stricter than `holds`.
    """
    if is_unspaced(wanted):
        return chinese(wanted) in chinese(text)
    return bool(wanted.strip()) and _joined(wanted) in _joined(text)


def holds(text: str, wanted: str) -> bool:
    """Whether `wanted` occurs in `text`, in whole words once both are normalised.

    Chinese has no words to respect: there any run of characters counts.
    """
    if is_unspaced(wanted):
        return chinese(wanted) in chinese(text)
    return bool(wanted.strip()) and _bounded(wanted) in _bounded(text)


def _unmarked(text: str) -> str:
    return normalize("NFC", text).lower().translate(_NO_PUNCTUATION)


def _apart(text: str) -> list[str]:
    """Words; unspaced letters stand alone, so that "2008" is found in "于2008年"."""
    return (text if text.isascii() else _WIDE.sub(r" \1 ", text)).split()


@lru_cache(maxsize=8192)
def _bounded(text: str) -> str:
    return f" {' '.join(_apart(squad(text)))} "


def _joined(text: str) -> str:
    """What `_bounded` has, without blanks where letters stand alone."""
    lower = squad(text)
    return lower if lower.isascii() else _WIDE.sub(r"\1", lower)
