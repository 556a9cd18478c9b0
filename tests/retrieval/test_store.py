from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from rag_repro import retrieval
from rag_repro.retrieval import BM25, Analyzer, Dense, RetrievalError, StoreError
from tests.retrieval.conftest import Letters, corpus_of
from tests.retrieval.test_bm25 import THREE


@pytest.fixture
def corpus():
    return corpus_of(*THREE)


@pytest.fixture
def saved(corpus, tmp_path):
    return BM25(corpus, variant="atire", k1=1.2).save(tmp_path / "index")


def again(folder, corpus, **settings):
    """Saved where `saved` is, which must be the same."""
    return BM25(corpus, **{"variant": "atire", "k1": 1.2, **settings}).save(folder)


def test_dense_reloaded_gives_the_same_results_and_encodes_no_passage(tmp_path):
    corpus = corpus_of("a", "a b", "c")
    made = Dense(corpus, Letters(), query_prefix="b ", folder=tmp_path / "index")
    encoder = Letters()
    loaded = Dense(corpus, encoder, query_prefix="b ", folder=tmp_path / "index")
    assert encoder.asked == []
    assert loaded.search(["a", "c"], 3) == made.search(["a", "c"], 3)
    assert loaded.fingerprint == made.fingerprint


def test_the_same_corpus_gives_the_same_bytes(corpus, tmp_path):
    cards = [
        json.loads((BM25(corpus).save(tmp_path / name) / "card.json").read_text()) for name in "ab"
    ]
    assert cards[0] == cards[1]
    assert {"data.csc.index.npy", "vocab.index.json"} <= set(cards[0]["files"])


def test_passages_are_not_stored(tmp_path):
    corpus = corpus_of("red Fox; red fox?", "dog")
    folder = BM25(corpus).save(tmp_path / "index")
    stored = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert b"red Fox" not in stored
    assert b"red fox" not in stored


@pytest.mark.parametrize(
    ("expected", "field", "want", "have"),
    [
        ({"variant": "lucene"}, "settings.variant", "'lucene'", "'atire'"),
        ({"k1": 0.9}, "settings.k1", "0.9", "1.2"),
        ({"b": 0.4}, "settings.b", "0.4", "0.75"),
        ({"fields": ("text",)}, "settings.fields", r"\['text'\]", r"\['title', 'text'\]"),
        (
            {"analyzer": Analyzer(stemmer="english")},
            "settings.analyzer.stemmer",
            "'english'",
            "None",
        ),
    ],
)
def test_other_settings_are_refused_by_field(saved, corpus, expected, field, want, have):
    with pytest.raises(StoreError, match=f"{field}: expected {want}, found {have}") as error:
        again(saved, corpus, **expected)
    assert "delete this one and build the index again" in str(error.value)
    assert "settings.variant" not in str(error.value) or "variant" in expected


def test_another_corpus_is_refused(saved):
    with pytest.raises(StoreError, match=r"corpus\.sha256: expected .*, found"):
        again(saved, corpus_of("red fox", "red red dog", "blue dog cat birds"))
    with pytest.raises(StoreError, match=r"corpus\.passages: expected 2, found 3"):
        again(saved, corpus_of(*THREE[:2]))


def test_another_encoder_is_refused(tmp_path):
    corpus = corpus_of("a", "b")
    Dense(corpus, Letters()).save(tmp_path / "index")
    other = Letters()
    other.fingerprint = "letters-2"
    with pytest.raises(StoreError, match=r"settings\.encoder: expected 'letters-2', found"):
        Dense(corpus, other, folder=tmp_path / "index")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("versions.bm25s", "0.0.1"),
        ("settings.analyzer.stop_words_sha256", "0" * 64),
        ("version", 0),
    ],
)
def test_an_index_made_by_other_code_is_refused(saved, corpus, field, value):
    card = json.loads((saved / "card.json").read_text())
    *path, last = field.split(".")
    inner = card
    for key in path:
        inner = inner[key]
    inner[last] = value
    (saved / "card.json").write_text(json.dumps(card))
    with pytest.raises(StoreError, match=f"{field}: expected .*, found {value!r}"):
        again(saved, corpus)


def test_an_index_of_another_kind_is_refused(saved, corpus):
    with pytest.raises(StoreError, match="kind: expected 'dense', found 'bm25'"):
        Dense(corpus, Letters(), folder=saved)


@pytest.mark.parametrize("harm", ["cut", "change", "remove"])
def test_harmed_files_are_refused_by_name(saved, corpus, harm):
    path = saved / "data.csc.index.npy"
    whole = path.read_bytes()
    if harm == "remove":
        path.unlink()
    else:
        path.write_bytes(whole[:-4] if harm == "cut" else whole[:-4] + b"\0\0\0\1")
    with pytest.raises(
        StoreError, match=r"(?s)files\.data\.csc\.index\.npy.*build the index again"
    ):
        again(saved, corpus)


@pytest.mark.parametrize("text", ["{", "[]", '"x"', '{"kind": "bm25"}', "\udcff"])
def test_a_harmed_card_is_refused(saved, corpus, text):
    (saved / "card.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match=r"(?s)card\.json .*build the index again"):
        again(saved, corpus)


def test_saving_again_keeps_the_same_index_and_refuses_another(saved, corpus):
    before = (saved / "card.json").stat().st_mtime_ns
    assert BM25(corpus, variant="atire", k1=1.2).save(saved) == saved
    assert (saved / "card.json").stat().st_mtime_ns == before
    with pytest.raises(StoreError, match=r"settings\.k1: expected 1\.5, found 1\.2"):
        BM25(corpus, variant="atire").save(saved)


def test_foreign_folders_and_files_are_not_touched(tmp_path, corpus):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.txt").write_text("keep me")
    (tmp_path / "file").write_text("keep me")
    for name in ("notes", "file"):
        with pytest.raises(StoreError, match=r"holds no index .*choose another folder"):
            BM25(corpus).save(tmp_path / name)
    assert (tmp_path / "notes" / "note.txt").read_text() == "keep me"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "notes"]


def test_an_empty_folder_is_filled(tmp_path, corpus):
    (tmp_path / "index").mkdir()
    BM25(corpus).save(tmp_path / "index")
    assert (tmp_path / "index" / "card.json").is_file()


def test_a_write_that_fails_leaves_nothing(tmp_path, corpus, monkeypatch):
    retriever = BM25(corpus)

    def fail(folder):
        (folder / "half").write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(retriever, "_write", fail)
    with pytest.raises(OSError, match="disk full"):
        retriever.save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_nothing_stands_under_the_name_before_all_is_written(tmp_path, corpus, monkeypatch):
    def fail(source, target):
        assert (source / "card.json").exists()
        assert not target.exists()
        raise PermissionError("no")

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(PermissionError):
        BM25(corpus).save(tmp_path / "index")
    assert list(tmp_path.iterdir()) == []


def test_of_two_different_that_save_at_once_the_later_is_refused(tmp_path, corpus, monkeypatch):
    first, second = BM25(corpus), BM25(corpus, k1=1)
    write = second._write
    monkeypatch.setattr(
        second, "_write", lambda folder: (write(folder), first.save(tmp_path / "index"))
    )
    with pytest.raises(StoreError, match=r"settings\.k1: expected 1\.0, found 1\.5"):
        second.save(tmp_path / "index")
    assert [p.name for p in tmp_path.iterdir()] == ["index"]


def test_two_that_save_at_once_end_with_one_index(tmp_path, corpus):
    first, second = BM25(corpus), BM25(corpus)
    write = second._write

    def late(folder):
        write(folder)
        first.save(tmp_path / "index")  # is done while the second still writes

    second._write = late
    assert second.save(tmp_path / "index") == tmp_path / "index"
    assert [p.name for p in tmp_path.iterdir()] == ["index"]
    assert BM25(corpus).save(tmp_path / "index")


def test_vectors_are_encoded_once_and_held_to_what_is_asked(tmp_path):
    corpus, encoder, folder = corpus_of("a", "b c", "c"), Letters(), tmp_path / "index"
    first = Dense(corpus, encoder, folder=folder)
    again = Dense(corpus, encoder, folder=folder)
    assert len(encoder.asked) == 1
    assert again.search(["c"], 2) == first.search(["c"], 2)
    with pytest.raises(StoreError, match=r"settings\.fields"):
        Dense(corpus, encoder, fields=("text",), folder=folder)
    Dense(corpus, encoder, fields=("text",), folder=tmp_path / "text")
    with pytest.raises(StoreError, match=r"settings\.fields"):  # defaults count as asked for
        Dense(corpus, encoder, folder=tmp_path / "text")


def test_build_from_plain_settings(corpus):
    made = retrieval.build("bm25", corpus, variant="atire", analyzer={"stemmer": "english"})
    same = BM25(corpus, variant="atire", analyzer=Analyzer(stemmer="english"))
    assert made.fingerprint == same.fingerprint
    assert retrieval.build("rank_bm25", corpus).search(["fox"], 1)[0][0].passage.id == "p0"
    for settings, says in [
        ({"kind": "bm52"}, "did you mean 'bm25'"),
        ({"kind": "bm25", "varient": "atire"}, "BM25 has no setting 'varient', did you mean 'var"),
        ({"kind": "bm25", "analyzer": {"stem": 1}}, "Analyzer has no setting 'stem'"),
    ]:
        with pytest.raises(RetrievalError, match=says):
            retrieval.build(corpus=corpus, **settings)


def test_vectors_on_disk_are_plain_numbers(tmp_path):
    folder = Dense(corpus_of("a", "b"), Letters()).save(tmp_path / "index")
    vectors = np.load(folder / "vectors.npy", allow_pickle=False)
    assert vectors.dtype == np.float32
    assert vectors.tolist() == [[1, 0, 0], [0, 1, 0]]


def test_importing_the_room_imports_no_heavy_library():
    code = (
        "import sys, rag_repro.retrieval;"
        "print(*{'bm25s', 'rank_bm25', 'faiss', 'Stemmer', 'torch', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_file_that_is_not_on_the_card_is_refused(saved, corpus):
    (saved / "more.npy").write_bytes(b"")
    with pytest.raises(StoreError, match=r"files\.more\.npy\.bytes: expected 0, found None"):
        again(saved, corpus)


def test_a_hidden_file_of_the_system_is_no_fault(saved, corpus):
    (saved / ".DS_Store").write_bytes(b"icons")
    assert again(saved, corpus) == saved
