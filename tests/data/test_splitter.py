"""Passages of 100 words or tokens, by hand."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from rag_repro.data.public import BadLine, CorruptFile, MissingFile
from rag_repro.data.splitter import articles, by_tokens, by_words, spans_of


def pieces(passages):
    return [p.text for p in passages]


def test_words_in_disjoint_blocks_with_the_title():
    text = " ".join(f"w{i}" for i in range(250))
    found = list(by_words([("Orvane", text)]))
    assert [len(p.text.split()) for p in found] == [100, 100, 50]
    assert " ".join(pieces(found)) == text
    assert {p.title for p in found} == {"Orvane"}
    stems = {p.id.rpartition("-")[0] for p in found}
    assert len(stems) == 1
    assert [p.id.rpartition("-")[2] for p in found] == ["1", "2", "3"]


def test_words_by_hand():
    assert pieces(by_words([("T", "a  b\nc\td e")], 2)) == ["a b", "c d", "e"]
    assert pieces(by_words([("T", "a b c d")], 2)) == ["a b", "c d"]
    assert pieces(by_words([("T", " \n "), ("U", "x")], 2)) == ["x"]


def test_equal_titles_and_equal_blocks_have_ids_of_their_own():
    found = list(by_words([("T", "a a"), ("T", "a b")], 1))
    assert len({p.id for p in found}) == 4


def test_it_streams():
    def endless():
        while True:
            yield "T", "a b c"

    stream = by_words(endless(), 2)
    assert [next(stream).text for _ in range(4)] == ["a b", "c", "a b", "c"]


def characters(text):
    return [m.span() for m in re.finditer(r"\S", text)]


def test_tokens_keep_the_text_between_them():
    assert pieces(by_tokens([("T", " ab  c\nde ")], characters, 2)) == ["ab", "c\nd", "e"]
    assert pieces(by_tokens([("T", "abc")], characters, 5)) == ["abc"]
    assert pieces(by_tokens([("T", "")], characters, 5)) == []


def test_a_character_of_several_tokens_is_not_cut():
    spans = [(0, 1), (1, 2), (1, 2), (2, 3)]  # "b" is two tokens
    assert pieces(by_tokens([("T", "abc")], lambda text: spans, 2)) == ["a", "b", "c"]
    # Where one character alone has more tokens than a passage, it is cut after it.
    assert pieces(by_tokens([("T", "b")], lambda text: [(0, 1)] * 3, 2)) == ["b"]


def test_spans_of_a_tokenizer_leaves_special_tokens_out():
    def tokenizer(text, *, add_special_tokens, return_offsets_mapping):
        assert return_offsets_mapping
        assert not add_special_tokens
        return {"offset_mapping": characters(text)}

    assert pieces(by_tokens([("T", "a b")], spans_of(tokenizer), 1)) == ["a", "b"]


def test_size_of_nothing_is_refused():
    with pytest.raises(ValueError, match="size of 1 or more"):
        next(by_words([("T", "a")], 0))


def dump(path, *lines):
    text = "".join(x if isinstance(x, str) else json.dumps(x) + "\n" for x in lines)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("name", ["dump.jsonl", "dump.jsonl.gz"])
def test_a_dump_is_read_as_it_streams(tmp_path, name):
    good = {"id": "1", "title": "Orvane", "text": "A harbour."}
    path = dump(tmp_path / name, good, "\n", {"title": "Bad"})
    stream = articles(path)
    assert next(stream) == ("Orvane", "A harbour.")
    with pytest.raises(BadLine, match="line 3: no field 'text'"):
        next(stream)


def test_a_damaged_dump(tmp_path):
    path = dump(tmp_path / "dump.gz", *({"title": f"T{i}", "text": f"x{i}"} for i in range(50)))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(CorruptFile, match="damaged"):
        list(articles(path))
    with pytest.raises(BadLine, match="line 1: not JSON"):
        list(articles(dump(tmp_path / "a", "{\n")))
    with pytest.raises(BadLine, match="line 1: not a JSON object"):
        list(articles(dump(tmp_path / "b", "3\n")))
    with pytest.raises(MissingFile):
        list(articles(tmp_path / "none"))
