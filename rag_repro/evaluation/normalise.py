"""Bring two strings to a form in which they can be compared.

`squad` is what nearly everyone uses, `erm4` what ERM4's released scorer does,
`chinese` what LongBench does to DuReader's answers. `answer` picks between
the first and the last by looking at the text.
"""

from __future__ import annotations

import re
import string
from functools import lru_cache

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WIDE = re.compile("([\u3000-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef])")
_NO_ASCII_PUNCTUATION = str.maketrans("", "", string.punctuation)
# LongBench's list of full-width marks (metrics.py, normalize_zh_answer).
_WIDE_PUNCTUATION = (
    "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】"
    "〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏《〈〉"
)
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation + _WIDE_PUNCTUATION)


def squad(text: str) -> str:
    """Lower case, no ASCII punctuation, no a/an/the, single spaces.

    SQuAD's `normalize_answer`, used word for word by HotpotQA, 2Wiki, MuSiQue,
    Adaptive-RAG (so DR-RAG), DRAGIN and LongBench (so R²AG). Punctuation is
    dropped, not replaced by a space: "U.S." is "us", "1990-91" is "199091".

    One difference: where that leaves nothing ("The The" or "!!!") the
    lower-cased text is kept, since an empty answer is contained in every
    prediction and would always score.
    """
    lower = text.lower()
    bare = _ARTICLES.sub(" ", lower.translate(_NO_ASCII_PUNCTUATION))
    return " ".join(bare.split()) or " ".join(lower.split())


def erm4(text: str) -> str:
    """Lower case, no ASCII punctuation, runs of white space as one space.

    ERM4's release (`evaluation.py`): articles stay, ends are not stripped.
    """
    return re.sub(r"\s+", " ", text.lower().translate(_NO_ASCII_PUNCTUATION))


def chinese(text: str) -> str:
    """Lower case, no punctuation of either width, no white space at all."""
    return "".join(text.lower().translate(_NO_PUNCTUATION).split())


def is_chinese(text: str) -> bool:
    """Whether the text holds at least one Chinese character."""
    return _HAN.search(text) is not None


def answer(text: str) -> str:
    """`chinese` where the text holds a Chinese character, else `squad`."""
    return chinese(text) if is_chinese(text) else squad(text)


def units(text: str) -> list[str]:
    """What token scores count: words of `squad`, or Chinese characters.

    LongBench cuts Chinese into words with jieba; we count characters, which
    needs no dictionary. A run of Latin letters or digits inside Chinese text
    is one unit.
    """
    if not is_chinese(text):
        return squad(text).split()
    return _WIDE.sub(r" \1 ", text.lower().translate(_NO_PUNCTUATION)).split()


@lru_cache(maxsize=8192)
def _bounded(text: str) -> str:
    # Chinese characters stand alone, so that "2008" is found in "于2008年".
    words = _WIDE.sub(r" \1 ", squad(text)).split()
    return f" {' '.join(words)} "


def holds(text: str, wanted: str) -> bool:
    """Whether `wanted` occurs in `text`, in whole words once both are normalised.

    Chinese has no words to respect: there any run of characters counts.
    """
    if is_chinese(wanted):
        return chinese(wanted) in chinese(text)
    return bool(wanted.strip()) and _bounded(wanted) in _bounded(text)
