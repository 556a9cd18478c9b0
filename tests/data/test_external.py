"""Files and folders by their address: what each becomes, and what is said of each mistake."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

import rag_repro
from rag_repro import cli, data, workflow
from rag_repro.data import external, own, splits
from rag_repro.data.external import Address
from rag_repro.data.public import FORMATS, DataError, UnknownName
from rag_repro.data.splits import SplitError
from rag_repro.publish import parameters
from rag_repro.study import campaign, papers
from rag_repro.study.conditions import Condition

OFFICIAL = Path(__file__).with_name("files") / "official"

ROWS = [
    {
        "qid": f"a{i}",
        "asked": f"Who built quay {i}?",
        "said": {"text": [f"Jo {i}", "Jo"], "start": [0, 1]},
        "ctxs": [
            {"name": f"Quay {i}", "body": f"Quay {i} was built by Jo {i}.", "good": True},
            {"name": "Orvane", "body": "Orvane is a harbour. It is old.", "good": False},
        ],
    }
    for i in range(3)
]
FIELDS = "question=asked&answers=said.text&id=qid&passages=ctxs&title=name&text=body"


def hotpot(folder, n=4, **changes):
    """A file in the official form of HotpotQA."""
    rows = [
        {
            "_id": f"h{i}",
            "question": f"Where is quay {i}?",
            "answer": "Orvane",
            "supporting_facts": [[f"Quay {i}", 0]],
            "context": [[f"Quay {i}", [f"Quay {i} is at Orvane.", " It is old."]], ["B", ["B."]]],
            "type": "bridge",
            "level": "hard",
            **changes,
        }
        for i in range(n)
    ]
    (folder / "dev.json").write_text(json.dumps(rows))
    return folder / "dev.json"


def jsonl(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def beir(folder):
    jsonl(
        folder / "corpus.jsonl",
        [{"_id": f"d{i}", "title": f"T{i}", "text": f"Text {i} is here."} for i in range(4)],
    )
    jsonl(folder / "queries.jsonl.gz", [{"_id": f"q{i}", "text": f"Query {i}?"} for i in range(3)])
    (folder / "qrels").mkdir()
    head = "query-id\tcorpus-id\tscore\n"
    (folder / "qrels" / "test.tsv").write_text(head + "q1\td1\t2\nq1\td3\t1\nq1\td0\t0\n")
    (folder / "qrels" / "dev.tsv").write_text(head + "q0\td0\t1\nq2\td9\t1\n")
    return folder


def refused(name, *parts, split="test"):
    with pytest.raises((DataError, UnknownName, SplitError)) as error:
        data.load(name, split=split)
    text = str(error.value)
    assert "\n" not in text
    for part in parts:
        assert part in text
    return error.value


# ---------------------------------------------------------------- what it becomes


@pytest.mark.parametrize("split", [None, "all", "test"])
def test_an_official_file_is_answered_whole(tmp_path, split):
    made = data.load(f"hotpotqa:{hotpot(tmp_path)}", split=split)
    assert [q.id for q in made.questions] == ["h0", "h1", "h2", "h3"]
    assert len(made.corpus) == 5
    assert [len(q.gold) for q in made.questions] == [1, 1, 1, 1]
    assert made.card["title"] == "a file in the form of HotpotQA"
    refused(f"hotpotqa:{hotpot(tmp_path)}", "has no tune questions", split="tune")


def test_every_known_format_reads_its_official_file(tmp_path):
    read = set()
    for path in sorted(OFFICIAL.rglob("*")):
        for form in FORMATS:
            try:
                made = data.load(f"{form}:{path}", split="test")
            except ValueError:
                continue
            read.add(form)
            assert made.name.startswith(f"{form}-")
            assert made.card["splits"] == {"test": len(made.questions)}
    assert read >= set(FORMATS) - {"project"}


def test_no_path_enters_a_name_and_other_content_or_options_do(tmp_path):
    (tmp_path / "b").mkdir()
    first, moved = hotpot(tmp_path), hotpot(tmp_path / "b")
    label = data.label(f"hotpotqa:{first}")
    assert label.startswith("hotpotqa-dev@")
    assert data.label(f"hotpotqa:{moved}") == label
    assert data.label(f"hotpotqa:{moved}?words=all") == label
    assert data.label(f"hotpotqa:{moved}?words=5") != label
    hotpot(tmp_path / "b", 5)
    assert data.label(f"hotpotqa:{moved}") != label
    assert str(tmp_path) not in json.dumps(
        Condition(f"hotpotqa:{first}", "single_step", retriever="bm25").identity
    )
    assert data.is_made_here(f"hotpotqa:{first}")


def test_a_relative_path_means_the_callers_folder(tmp_path, monkeypatch):
    hotpot(tmp_path)
    jsonl(tmp_path / "c.jsonl", ROWS[0]["ctxs"])
    monkeypatch.chdir(tmp_path)
    assert data.load("hotpotqa:dev.json").questions
    assert data.absolute("hotpotqa:dev.json") == f"hotpotqa:{tmp_path}/dev.json"
    assert data.absolute("folder:x") == f"folder:{tmp_path}/x"
    assert data.absolute("world-B@20000") == "world-B@20000"
    name = "jsonl:a b.jsonl?corpus=c.jsonl&question=what%26why"
    assert external.parse(data.absolute(name)) == Address(
        "jsonl",
        tmp_path / "a b.jsonl",
        (("corpus", f"{tmp_path}/c.jsonl"), ("question", "what&why")),
    )
    given = parameters.override("11_drrag_recall", {"dataset": "hotpotqa:dev.json"})
    assert given == {"dataset": f"hotpotqa:{tmp_path}/dev.json"}


@pytest.mark.parametrize("name", ["q.jsonl", "q.jsonl.gz", "q.json", "q.parquet"])
def test_tables_with_field_names(tmp_path, name):
    path, form = tmp_path / name, "parquet" if name.endswith("parquet") else "jsonl"
    if form == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif name.endswith("json"):
        path.write_text(json.dumps(ROWS), encoding="utf-8-sig")
    else:
        jsonl(path, ROWS)
    made = data.load(f"{form}:{path}?{FIELDS}&gold=ctxs.good", split="test")
    assert [q.id for q in made.questions] == ["a0", "a1", "a2"]
    assert made.questions[0].answers == ("Jo 0", "Jo")
    assert len(made.corpus) == 4
    of = made.corpus.by_id
    assert [of[q.gold_ids[0]].title for q in made.questions] == ["Quay 0", "Quay 1", "Quay 2"]


def test_a_corpus_of_its_own_and_gold_by_id(tmp_path):
    jsonl(tmp_path / "c.jsonl", [{"_id": i, "text": f"Passage {i}."} for i in range(3)])
    rows = [{"question": "Is it?", "answer": True, "gold": [2]}, {"question": "Why?"}]
    rows[1]["gold"] = "1"
    path = jsonl(tmp_path / "q.jsonl", rows)
    made = data.load(f"jsonl:{path}?corpus={tmp_path}/c.jsonl&gold=gold")
    assert [(q.id, q.answers, q.gold_ids) for q in made.questions] == [
        ("q1", ("yes",), ("2",)),
        ("q2", (), ("1",)),
    ]
    alone = data.load(f"jsonl:{tmp_path}/c.jsonl")
    assert (len(alone.corpus), alone.questions) == (3, ())
    refused(f"jsonl:{tmp_path}/c.jsonl", "no question", "add question=FIELD")


def test_gold_that_is_not_in_the_corpus_is_refused(tmp_path):
    docs = [{"id": f"d{i}", "text": f"Text {i}."} for i in (1, 2)]
    gold = [["d1"], ["d1", *(f"x{i}" for i in range(5))], "dy"]
    rows = [{"question": f"Who {i}?", "g": g} for i, g in enumerate(gold)]
    jsonl(tmp_path / "c.jsonl", [*docs, {"id": "d3", "text": " "}])
    path, query = jsonl(tmp_path / "q.jsonl", rows), f"gold=g&corpus={tmp_path}/c.jsonl"
    said = ("question 'q2'", "not in the corpus", "'x0', 'x1', 'x2', 'x3', ... (", "such gold: 2")
    refused(f"jsonl:{path}?{query}", "q.jsonl, line 2", *said)
    refused(f"jsonl:{path}?{query}&words=2", "q.jsonl, line 2", *said)
    parquet.write_table(pyarrow.Table.from_pylist(rows[:2]), tmp_path / "q.parquet")
    refused(f"parquet:{tmp_path}/q.parquet?{query}", *said[:-1], "such gold: 1")
    jsonl(path, [{"question": "Who?", "g": "d3"}])
    refused(f"jsonl:{path}?{query}", "or has no text: 'd3'")
    # Without a corpus file, gold is among the passages of any question.
    jsonl(path, [{"question": "Who?", "ps": [{"title": "T", "text": "x"}], "g": ["T", "U"]}])
    refused(f"jsonl:{path}?gold=g&passages=ps", "'U'")


def test_folders_of_beir(tmp_path, caplog):
    made = data.load(f"beir:{beir(tmp_path)}", split="test")
    assert not caplog.text
    [question] = made.questions
    assert (question.id, question.gold_ids, question.candidates) == ("q1", ("d1", "d3"), ())
    assert len(made.corpus) == 4
    dev = data.load(f"beir:{tmp_path}?split=dev")
    assert [(q.id, q.gold_ids) for q in dev.questions] == [("q0", ("d0",)), ("q2", ())]
    assert dev.card["counts"]["gold_not_in_corpus"] == 1
    assert "1 of 2 gold passages are not in the corpus" in caplog.text
    assert dev.name != made.name
    refused(f"beir:{tmp_path}?split=tset", "did you mean 'test'", "there are: dev, test")


def arrow(folder, rows):
    """As `save_to_disk` of `datasets` writes one split."""
    folder.mkdir(parents=True)
    table = pyarrow.Table.from_pylist(rows)
    name = "data-00000-of-00001.arrow"
    with pyarrow.ipc.new_stream(str(folder / name), table.schema) as out:
        out.write_table(table)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name}]}))
    (folder / "dataset_info.json").write_text("{}")
    return folder


def test_folders_of_hugging_face(tmp_path):
    saved = arrow(tmp_path / "one", ROWS)
    made = data.load(f"hf:{saved}?{FIELDS}")
    assert len(made.questions) == 3
    both = tmp_path / "both"
    arrow(both / "train", ROWS[:1])
    arrow(both / "validation", ROWS[1:])
    (both / "dataset_dict.json").write_text('{"splits": ["train", "validation"]}')
    assert len(data.load(f"hf:{both}?{FIELDS}").questions) == 2
    assert len(data.load(f"hf:{both}?{FIELDS}&split=train").questions) == 1
    hub = tmp_path / "hub"
    (hub / "distractor").mkdir(parents=True)
    columns = {"title": ["T", "U"], "sentences": [["A b.", " C d."], ["E."]]}
    rows = [{"question": "Who?", "answer": "x", "context": columns, "facts": {"title": ["U"]}}]
    for part in ("train-00000-of-00001", "validation-00000-of-00002", "validation-00001-of-00002"):
        parquet.write_table(pyarrow.Table.from_pylist(rows), hub / "distractor" / f"{part}.parquet")
    named = f"hf:{hub}?passages=context&text=sentences&gold=facts.title"
    made = data.load(named)
    assert [p.text for p in made.corpus.passages] == ["A b. C d.", "E."]
    assert [q.id for q in made.questions] == ["q1", "q2"]
    assert made.corpus.by_id[made.questions[0].gold_ids[0]].title == "U"
    refused(f"{named}&split=tset", "no split 'tset'", "train, validation")
    refused(f"{named}&config=full", "no config 'full'", "there are: distractor")
    refused(f"hf:{tmp_path / 'none'}", "there is no such folder")


def test_passages_are_cut_only_where_that_is_asked_for(tmp_path):
    jsonl(tmp_path / "c.jsonl", [{"id": "d", "text": "A b c. D e f. G h i."}])
    path = jsonl(tmp_path / "q.jsonl", [{"question": "Who?", "gold": "d"}])
    name = f"jsonl:{path}?corpus={tmp_path}/c.jsonl&gold=gold"
    assert [p.id for p in data.load(name).corpus.passages] == ["d"]
    cut = data.load(f"{name}&words=6")
    assert [(p.id, p.text) for p in cut.corpus.passages] == [
        ("d#1", "A b c. D e f."),
        ("d#2", "G h i."),
    ]
    assert cut.questions[0].gold_ids == ("d#1", "d#2")
    assert cut.card["words a passage"] == "at most 6, whole sentences"
    texts = tmp_path / "texts"
    (texts / "passages").mkdir(parents=True)
    (texts / "passages" / "a.txt").write_text("It was so here. " * 75)
    assert len(own.corpus(texts)) == 3
    assert len(own.corpus(f"{texts}?words=all")) == 1
    assert len(own.corpus(f"{texts}?words=30")) == 11
    assert own.label(f"{texts}?words=100") == own.label(texts) != own.label(f"{texts}?words=30")


def test_musiques_steps_keep_their_passages_when_cut(tmp_path):
    path = next(p for p in OFFICIAL.rglob("musique*.jsonl"))
    whole, cut = (data.load(f"musique:{path}{o}") for o in ("", "?words=4"))
    assert len(cut.corpus) > len(whole.corpus)
    for a, b in zip(whole.questions, cut.questions, strict=True):
        for one, other in zip(a.steps, b.steps, strict=True):
            if one.passage_id is not None:
                text = cut.corpus.by_id[other.passage_id].text
                assert whole.corpus.by_id[one.passage_id].text.startswith(text)


# ---------------------------------------------------------------- where it is used


def test_ask_compare_and_the_command_line_take_it(tmp_path, capsys):
    name = f"hotpotqa:{hotpot(tmp_path)}"
    asked = rag_repro.ask("Where is quay 2?", name, reader=None, k=1)
    assert "Quay 2" in repr(asked)
    made = rag_repro.compare(
        ["single_step"], name, tmp_path / "results", reader=None, metrics=("recall",), k=1
    )
    assert len(made.lines("single_step")) == 4
    assert cli.main(["data", "card", name]) == 0
    shown = capsys.readouterr().out
    for part in ("questions: 4", "passages: 5", "bytes)", "bm25: about", "words a passage"):
        assert part in shown


def test_an_exhibit_runs_on_it_whole(tmp_path, monkeypatch):
    hotpot(tmp_path)
    monkeypatch.chdir(tmp_path)
    [name, *_] = [
        exhibit.name
        for exhibit in papers.load("drrag").exhibits.values()
        if not exhibit.timed
        if any(grid.n and grid.split == "test" for grid in exhibit.grids)
    ]
    cells = campaign.select([name], datasets=["hotpotqa:dev.json"])
    assert {(c.condition.dataset, c.n, c.tier) for c in cells} == {
        ("hotpotqa:dev.json", None, "public")
    }
    with pytest.raises(DataError, match=r"did you mean 'dev\.json'"):
        campaign.select([name], datasets=["hotpotqa:dve.json"])
    work = workflow.Work(cells[0], total=4, missing=4, shards={(1, 1): 4}, joins=False)
    [job] = workflow._jobs(work, workflow.GridSettings((name,), tmp_path)).values()
    at = job.command.index("--dataset")
    assert job.command[at + 1] == f"hotpotqa:{tmp_path}/dev.json"


def test_a_set_by_its_name_says_what_its_split_leaves_out(tmp_path, caplog):
    known = splits.ids("strategyqa", "test")
    rows = [{"id": i, "question": f"Is {i}?", "answers": ["yes"]} for i in [*known, "mine"]]
    rows = [{**row, "docs": [{"title": "T", "text": "Text."}]} for row in rows]
    jsonl(tmp_path / "strategyqa.jsonl.gz", rows)
    jsonl(tmp_path / "strategyqa.corpus.jsonl.gz", [{"id": "a", "title": "A", "text": "A."}])
    with caplog.at_level("WARNING"):
        made = data.load("strategyqa", data_dir=tmp_path, split="test")
    assert len(made.questions) == len(known)
    assert f"{len(known)} of {len(rows)} questions are used" in caplog.text
    whole = data.load("strategyqa", data_dir=tmp_path, split="all")
    assert len(whole.questions) == len(rows)


# ---------------------------------------------------------------- mistakes


def test_mistakes_in_an_address(tmp_path):
    path = hotpot(tmp_path)
    refused(f"hotpot:{path}", "no format 'hotpot', did you mean 'hotpotqa'")
    refused(f"hotpotqa:{path}?word=9", "no option 'word', did you mean 'words'")
    refused(f"hotpotqa:{path}?words=none", "neither a whole number")
    refused(f"jsonl:{path}?question=a&question=b", "given twice")
    refused(f"jsonl:{path}?question=", "has no value")
    refused(f"hotpotqa:{tmp_path}/dve.json", "no such file, did you mean 'dev.json'")
    refused(f"parquet:{path}", "for JSON write jsonl:PATH")
    refused(f"beir:{tmp_path}", "no qrels/*.tsv")
    refused(f"hotpotqa:{tmp_path}", "it is a folder")
    refused(f"jsonl:{path}?corpus={tmp_path}/none.jsonl", "none.jsonl: there is no such file")
    refused(str(path), "'hotpotqa:", "write its format before it")
    for name in (f"hotpotqa:{tmp_path}/dve.json", "hotpot:x"):
        with pytest.raises((UnknownName, DataError)):
            data.check_name(name)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\x28\xb5\x2f\xfd..", "packed by zstd"),
        (b"PK\x03\x04..", "a zip archive"),
        (b"PAR1....", "write parquet:PATH"),
        ("[]".encode("utf-16"), "UTF-16"),
        (b'{"a": 1}\n{"a": 2}\n', "check that format and file go together"),
        (b'[{"_id": "x"}]', "record 1: no field 'supporting_facts'"),
        (b"[1]", "record 1: not a JSON object"),
        (b"[]", "no question in it"),
    ],
)
def test_the_wrong_file(tmp_path, content, told):
    (tmp_path / "x.json").write_bytes(content)
    refused(f"hotpotqa:{tmp_path}/x.json", "x.json", told)


@pytest.mark.parametrize(
    ("row", "query", "told"),
    [
        ({"q": "Who?"}, "", "name the fields, as jsonl:PATH?question=q"),
        ({"question": 5}, "", "field 'question' is not text: '5'"),
        ({"question": "Who?", "answers": {"text": ["x"]}}, "", "answers.text"),
        ({"question": "Who?", "answers": [["x"]]}, "", "not text or a list of texts"),
        ({"question": "Who?"}, "answers=said", "no field 'said' (it has question)"),
        ({"question": "Who?", "ps": 3}, "passages=ps", "not a list of passages"),
        ({"question": "Who?", "ps": [{"t": "x"}]}, "passages=ps", "no field 'text' (it has t)"),
        ({"question": "Who?", "ps": ["x"], "g": [True, True]}, "passages=ps&gold=g", "2 marks"),
        ({"question": "Who?", "ps": {"a": [1], "b": []}}, "passages=ps", "unequal length"),
        ({"question": "Who?", "id": "a"}, "", "question 'a' was line 1 already"),
        ({"question": "Who?", "id": 1.5}, "", "neither text nor a whole number"),
        ({"question": "Who?", "id": "b\n"}, "", "control character"),
    ],
)
def test_mixed_rows(tmp_path, row, query, told):
    sound = {"question": "First?", "id": "a", "answers": "x", "said": "x", "ps": [], "g": []}
    rows = [row] if "name the fields" in told else [sound, row]
    path = jsonl(tmp_path / "q.jsonl", rows)
    refused(f"jsonl:{path}" + (f"?{query}" if query else ""), f"line {len(rows)}", told)


def test_mistakes_in_folders(tmp_path):
    folder = beir(tmp_path / "b")
    jsonl(folder / "corpus.jsonl", [{"_id": "d1", "text": "x"}, {"_id": "d1", "text": "y"}])
    refused(f"beir:{folder}", "corpus.jsonl, line 2", "'d1' was line 1 already")
    jsonl(folder / "corpus.jsonl", [{"_id": "other", "text": "x"}])
    refused(f"beir:{folder}", "no passage that it judges is in the corpus")
    (folder / "qrels" / "test.tsv").write_text("q1 d1 1\n")
    refused(f"beir:{folder}", "test.tsv, line 1", "with tabs between them")
    saved = arrow(tmp_path / "hf", ROWS)
    (saved / "data-00000-of-00001.arrow").write_bytes(b"no arrow at all")
    refused(f"hf:{saved}?{FIELDS}", "no Arrow file that can be read")
    (saved / "state.json").write_text('{"_data_files": [{}], "_indices_data_files": [{}]}')
    refused(f"hf:{saved}", "flatten_indices")
    refused(f"hf:{folder}", "no dataset of Hugging Face")
