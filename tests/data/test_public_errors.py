"""Whatever is wrong with a file is said with file, line and remedy."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rag_repro.data import public
from rag_repro.data.public import opened_files


def row(n, **changes):
    """A good line of the project's layout."""
    made = {
        "id": f"q{n}",
        "question": f"Where is quay {n}?",
        "answers": ["Orvane"],
        "type": "bridge",
        "hops": 2,
        "docs": [
            {"title": f"Quay {n}", "text": f"Quay {n} is at Orvane.", "gold": True},
            {"title": "Orvane", "text": "Orvane is a harbour.", "gold": False},
        ],
        "meta": {},
    }
    return made | changes


def write(folder, *rows, name="hotpotqa.jsonl.gz"):
    text = "".join(r if isinstance(r, str) else json.dumps(r) + "\n" for r in rows)
    (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder


def refused(kind, folder, *parts, name="hotpotqa"):
    with pytest.raises(kind) as caught:
        public.load(name, folder)
    for part in parts:
        assert part in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_a_good_file(tmp_path):
    d = public.load("hotpotqa", write(tmp_path, row(1), "\n", row(2)))
    assert [q.id for q in d.questions] == ["q1", "q2"]
    assert len(d.corpus) == 3


def test_unknown_data_set():
    with pytest.raises(public.UnknownName, match="did you mean 'hotpotqa'"):
        public.load("hotpottqa", "anywhere")


def test_no_folder_named():
    refused(public.MissingFile, None, "RAG_REPRO_DATA", "hotpotqa.jsonl.gz")


def test_missing_file(tmp_path):
    refused(public.MissingFile, tmp_path, str(tmp_path), "hotpot_dev_distractor_v1.json")
    refused(public.MissingFile, tmp_path / "nowhere", "no such folder")


def test_bad_json_line(tmp_path):
    folder = write(tmp_path, row(1), '{"id": "q2", \n', row(3))
    refused(public.DataError, folder, "hotpotqa.jsonl.gz, line 2", "not JSON", "remove the line")


def test_line_that_is_no_object(tmp_path):
    refused(public.DataError, write(tmp_path, row(1), "[1, 2]\n"), "line 2", "not a JSON object")


def test_text_that_is_half_a_character(tmp_path):
    """What no file, hash or prompt could take up again; a whole one, escaped, is well."""
    refused(
        public.DataError, write(tmp_path, row(1), row(2, question="\ud83d?")), "line 2", "not JSON"
    )
    d = public.load("hotpotqa", write(tmp_path, row(1, question="\U0001f642?")))
    assert d.questions[0].text == "\U0001f642?"


@pytest.mark.parametrize("text", ["[" * 5000, '{"id": ' + "9" * 5000 + "}", '{"id": NaN}'])
def test_json_that_overflows_a_parser(tmp_path, text):
    refused(public.DataError, write(tmp_path, row(1), text + "\n"), "line 2", "not JSON")


@pytest.mark.parametrize("views", ["inf", "nan", "1e999", "many"])
def test_a_number_that_is_none(tmp_path, views):
    head = "id\tquestion\tpossible_answers\tprop\ts_pop\to_pop\n"
    (tmp_path / "popQA.tsv").write_text(head + f'1\tWho?\t["a"]\tx\t{views}\t3\n')
    refused(public.DataError, tmp_path, "line 2", "s_pop", name="popqa")


def test_a_row_with_too_many_cells(tmp_path):
    head = "id\tquestion\tpossible_answers\tprop\ts_pop\to_pop\n"
    (tmp_path / "popQA.tsv").write_text(head + '1\tWho?\t["a"]\tx\t1\t3\tand more\n')
    refused(public.DataError, tmp_path, "line 2", "more cells than columns", name="popqa")


def test_missing_field(tmp_path):
    bad = row(2)
    del bad["question"]
    refused(public.DataError, write(tmp_path, row(1), bad), "line 2", "no field 'question'")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("answers", "Orvane", "'answers' is not an array"),
        ("answers", [1], "'answers' has something other than strings"),
        ("answers", [" "], "has no answer"),
        ("question", "  ", "has no text"),
        ("hops", "two", "'hops' is not a whole number"),
        ("hops", True, "'hops' is not a whole number"),
        ("docs", [["Quay", "text"]], "passage 0 is not an object"),
        ("docs", [{"title": "Quay", "gold": True}], "line 2, passage 0: no field 'text'"),
    ],
)
def test_field_of_the_wrong_kind(tmp_path, field, value, said):
    refused(public.DataError, write(tmp_path, row(1), row(2, **{field: value})), "line 2", said)


def test_duplicate_question_id(tmp_path):
    folder = write(tmp_path, row(1), row(2), row(1))
    refused(public.DataError, folder, "line 3", "'q1' was line 1 already", "remove one")


def test_empty_gold_passage(tmp_path):
    docs = [{"title": "Quay 2", "text": " ", "gold": True}]
    refused(public.DataError, write(tmp_path, row(1), row(2, docs=docs)), "line 2", "'Quay 2'")


def test_question_without_gold(tmp_path):
    docs = [{"title": "Quay 2", "text": "Somewhere.", "gold": False}]
    folder = write(tmp_path, row(1), row(2, docs=docs))
    refused(public.DataError, folder, "line 2", "no gold passage")
    # Where the registry says that gold may be missing, it may.
    write(tmp_path, row(1), row(2, docs=docs), name="hotpotqa_fullwiki.jsonl.gz")
    d = public.load("hotpotqa_fullwiki", tmp_path)
    assert d.questions[1].gold == ()


def test_passage_without_text_that_is_not_gold_is_left_out_and_counted(tmp_path):
    docs = [*row(1)["docs"], {"title": "Blank", "text": "", "gold": False}]
    d = public.load("hotpotqa", write(tmp_path, row(1, docs=docs)))
    assert len(d.corpus) == len(d.questions[0].candidates) == 2
    assert d.card["counts"]["passages_without_text"] == 1


@pytest.mark.parametrize("cut", [40, -12])
def test_cut_off_gzip(tmp_path, cut):
    path = write(tmp_path, row(1), row(2)) / "hotpotqa.jsonl.gz"
    path.write_bytes(path.read_bytes()[:cut])
    refused(public.DataError, tmp_path, "hotpotqa.jsonl.gz", "damaged gzip", "again")


def test_flipped_byte_in_gzip(tmp_path):
    path = write(tmp_path, row(1), row(2)) / "hotpotqa.jsonl.gz"
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    path.write_bytes(bytes(raw))
    refused(public.DataError, tmp_path, "damaged gzip")


def test_gz_that_is_neither(tmp_path):
    (tmp_path / "hotpotqa.jsonl.gz").write_bytes(b"<html>not found</html>")
    refused(public.DataError, tmp_path, "neither gzip nor JSON")


def test_plain_json_under_a_gz_name_and_a_byte_order_mark(tmp_path):
    text = "\ufeff" + json.dumps(row(1)) + "\r\n" + json.dumps(row(2)) + "\r\n"
    (tmp_path / "hotpotqa.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert len(public.load("hotpotqa", tmp_path).questions) == 2
    (tmp_path / "hotpotqa.jsonl.gz").write_bytes(json.dumps(row(1)).encode())
    assert len(public.load("hotpotqa", tmp_path).questions) == 1


def test_not_utf8(tmp_path):
    good = json.dumps(row(1)).encode() + b"\n"
    (tmp_path / "hotpotqa.jsonl.gz").write_bytes(gzip.compress(good + b'{"id": "\xe9"}\n'))
    refused(public.DataError, tmp_path, "line 2", "not UTF-8")


def test_empty_file(tmp_path):
    refused(public.DataError, write(tmp_path, "\n"), "no question")


def test_corpus_file_missing_or_with_a_duplicate_id(tmp_path):
    question = {
        "id": "o1",
        "question": "Is Orvane old?",
        "answers": ["no"],
        "gold_titles": ["Orvane"],
    }
    write(tmp_path, question, name="2wikimultihopqa_open.jsonl.gz")
    refused(public.MissingFile, tmp_path, "corpus.jsonl.gz", name="2wikimultihopqa_open")
    passage = {"id": "c1", "title": "Orvane", "text": "Orvane is a harbour."}
    corpus = "2wikimultihopqa.corpus.jsonl.gz"
    write(tmp_path, passage, passage, name=corpus)
    refused(public.DataError, tmp_path, corpus, "line 2", "'c1'", name="2wikimultihopqa_open")
    write(tmp_path, passage | {"title": "Elsewhere"}, name=corpus)
    refused(
        public.DataError, tmp_path, "'Orvane'", "not in the corpus", name="2wikimultihopqa_open"
    )
    write(tmp_path, passage, name=corpus)
    d = public.load("2wikimultihopqa_open", tmp_path)
    assert d.questions[0].gold_ids == ("c1",)  # a corpus file's own ids are kept


@pytest.mark.parametrize(
    ("name", "file", "content", "parts"),
    [
        ("hotpotqa", "hotpot_dev_distractor_v1.json", "{}", ("line 1", "not an array")),
        ("hotpotqa", "hotpot_dev_distractor_v1.json", "[\n1]", ("record 1", "not a JSON object")),
        ("hotpotqa", "hotpot_dev_distractor_v1.json", '[\n{"_id": 1,}]', ("line 2", "not JSON")),
        ("musique", "musique_ans_v1.0_dev.jsonl", '{"id": "x"}', ("line 1", "number of hops")),
        ("popqa", "popQA.tsv", "id\tquestion\n", ("line 1", "no column 'possible_answers'")),
        ("dureader", "dureader.jsonl", '{"_id": "a", "input": "?", "answers": ["b"],'
         ' "context": "c"}', ("line 1", "文章1")),
        ("strategyqa", "strategyqa_train.json", "[]", ("strategyqa_train_paragraphs.json",)),
        ("iirc", "iirc/dev.json", "[]", ("context_articles.json",)),
    ],
)  # fmt: skip
def test_official_files_that_are_not_as_they_should(tmp_path, name, file, content, parts):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(content, encoding="utf-8")
    refused(public.DataError, tmp_path, *parts, name=name)


def test_a_key_of_any_length_makes_no_message_of_any_length(tmp_path):
    (tmp_path / "strategyqa_train.json").write_text("[]")
    beside = tmp_path / "strategyqa_train_paragraphs.json"
    beside.write_text(json.dumps({"x" * 5000: {"content": "text"}}))
    with pytest.raises(public.DataError, match="no field 'title'") as caught:
        public.load("strategyqa", tmp_path)
    assert str(beside) in str(caught.value)
    assert len(str(caught.value)) < 700 + len(str(beside))


def test_popqa_cells_that_cannot_be_read(tmp_path):
    head = "id\tquestion\tpossible_answers\tprop\ts_pop\to_pop\n"
    for cells in ("1\tWho?\t[oops\tx\t1\t2\n", '1\tWho?\t"[""a""]"\tx\tmany\t2\n'):
        (tmp_path / "popQA.tsv").write_text(head + cells)
        refused(public.DataError, tmp_path, "popQA.tsv, line 2", "cannot be read", name="popqa")
    (tmp_path / "popQA.tsv").write_text(head + "1\tWho?\n")
    refused(public.DataError, tmp_path, "line 2", "no field 'possible_answers'", name="popqa")


def test_musique_support_outside_the_passages(tmp_path):
    step = {"question": "a", "answer": "b", "paragraph_support_idx": 2}
    bad = row(1, meta={"question_decomposition": [step]})
    refused(public.DataError, write(tmp_path, bad), "line 1", "step 1", "paragraph_support_idx 2")


def test_an_id_that_a_terminal_would_obey(tmp_path):
    write(tmp_path, row(1, id="a\x1b[2Jb"))
    refused(public.DataError, tmp_path, "line 1", "holds a control character", "take it out")


def test_what_gives_without_end_is_no_file(tmp_path):
    with pytest.raises(public.MissingFile, match="there is no such file"):
        opened_files.read_text(Path("/dev/zero"))
