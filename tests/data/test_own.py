"""One's own folder: what it becomes, and what is said of each mistake."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag_repro import cli, data, splitter
from rag_repro.data import cards, own, own_files
from rag_repro.data.own import FolderError
from rag_repro.data.splits import SplitError
from rag_repro.study.conditions import Condition

MILL = "# The old mill\n\nThe mill was built by Jo Penn in 1801.\n"
WEIR = "The weir lies above the mill. It was drawn by Ash Kole.\n"


def write(folder, files):
    """Files by name below `folder`; text or bytes."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


@pytest.fixture
def folder(tmp_path):
    """A sound folder of two texts and three questions."""
    lines = [
        {"question": "Who built the mill?", "answers": "Jo Penn", "gold": "mill"},
        {
            "id": "weir",
            "question": "Who drew the weir above the mill of Jo Penn?",
            "answers": ["Ash Kole", "Kole"],
            "gold": ["drawn by Ash Kole", "mill#1"],
            "split": "tune",
            "kind": "two",
        },
        {"question": "Is it far?"},
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    files = {"passages/mill.md": MILL, "passages/water/the_weir.txt": WEIR}
    return write(tmp_path / "my texts", files | {"questions.jsonl": text})


def problems(folder):
    with pytest.raises(FolderError) as error:
        own.load(folder)
    for problem in error.value.problems:
        assert problem in str(error.value)
    return error.value.problems


# ---------------------------------------------------------------- what it becomes


def test_passages_have_titles_and_readable_ids(folder):
    found = data.load(f"folder:{folder}").corpus.passages
    assert [(p.id, p.title, p.text) for p in found] == [
        ("mill#1", "The old mill", "The mill was built by Jo Penn in 1801."),
        ("water/the_weir#1", "the weir", " ".join(WEIR.split())),
    ]


def test_questions_have_answers_gold_and_split(folder):
    made = data.load(f"folder:{folder}")
    first, second, third = made.questions
    assert (first.id, first.answers, first.gold_ids) == ("q1", ("Jo Penn",), ("mill#1",))
    assert first.gold[0].role is None
    assert (second.id, second.kind, second.answers) == ("weir", "two", ("Ash Kole", "Kole"))
    # Roles where several are needed: no title stands in the question in full but "the weir".
    assert [(g.passage_id, g.role) for g in second.gold] == [
        ("water/the_weir#1", "static"),
        ("mill#1", "dynamic"),
    ]
    assert (third.id, third.answers, third.gold) == ("q3", (), ())
    for split, ids in (("test", ["q1", "q3"]), ("tune", ["weir"])):
        part = data.load(f"folder:{folder}", split=split)
        assert [q.id for q in part.questions] == ids
        assert len(part.corpus) == 2
        assert part.card["split"] == split
    with pytest.raises(SplitError, match="has no train questions; it has tune, test"):
        data.load(f"folder:{folder}", split="train")
    with pytest.raises(SplitError, match="did you mean 'train'"):
        data.load(f"folder:{folder}", split="trian")


def test_the_card_has_counts_and_hash(folder, capsys):
    text = cards.describe(f"folder:{folder}")
    assert "texts: 2" in text
    assert "with answers: 2" in text
    assert "with gold: 2" in text
    assert "  tune: 1\n  test: 2" in text
    assert "corpus sha256: " in text
    assert str(folder.parent) not in text
    assert cli.main(["data", "card", f"folder:{folder}"]) == 0
    assert capsys.readouterr().out.strip() == text


def test_the_name_holds_no_path_and_follows_the_content(folder, tmp_path):
    name = data.label(f"folder:{folder}")
    assert name == data.load(f"folder:{folder}").name == data.load(f"folder:{folder}").corpus.name
    assert name.startswith("folder-my-texts@")
    elsewhere = shutil.copytree(folder, tmp_path / "deep" / "my texts")
    write(elsewhere, {".notes": "x", "passages/.draft.txt": b"\0", "readme.txt": "not read"})
    assert data.label(f"folder:{elsewhere}") == name
    write(elsewhere, {"passages/mill.md": MILL + "It burned.\n"})
    changed = data.label(f"folder:{elsewhere}")
    assert changed != name
    (elsewhere / "questions.jsonl").write_text('{"question": "Is it near?"}\n')
    assert data.label(f"folder:{elsewhere}") not in (name, changed)
    shutil.move(elsewhere / "passages/mill.md", elsewhere / "passages/meal.md")
    assert len({data.label(f"folder:{elsewhere}"), name, changed}) == 3


def test_a_condition_and_its_record_hold_no_path(folder, tmp_path, monkeypatch):
    condition = Condition(f"folder:{folder}", "single_step", retriever="bm25")
    assert condition.identity["dataset"] == data.label(f"folder:{folder}")
    assert str(tmp_path) not in json.dumps(condition.identity) + condition.path
    monkeypatch.chdir(folder.parent)
    assert Condition("folder:my texts", "single_step", retriever="bm25").hash == condition.hash
    # Data sets without a folder keep their names, and so their records.
    world = Condition("world-B@1000", "single_step")
    assert world.identity["dataset"] == "world-B@1000"
    assert "code" not in world.identity


def test_a_folder_without_its_prefix_is_told_how_to_write_it(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    with pytest.raises(ValueError, match="write 'folder:my texts'"):
        data.load("my texts")


def test_the_corpus_alone_needs_no_questions(folder):
    (folder / "questions.jsonl").unlink()
    assert [p.id for p in own.corpus(folder).passages] == ["mill#1", "water/the_weir#1"]
    write(folder, {"passages/mill.md": b"\xff"})
    with pytest.raises(FolderError, match="not UTF-8"):
        own.corpus(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("questions.csv", 'question,answers,gold\r\n"Who, then, built it?",Jo Penn|Penn,mill\r\n'),
        (
            "questions.csv",
            '\ufeffgold,question,answers\n\nmill,"Who, then, built it?",Jo Penn|Penn',
        ),
        ("questions.txt", "\n  Who, then, built it?  \n\n"),
    ],
)
def test_other_forms_of_questions(folder, name, content):
    (folder / "questions.jsonl").unlink()
    write(folder, {name: content})
    [question] = own.load(folder).questions
    assert question.text == "Who, then, built it?"
    if name.endswith("csv"):
        assert question.answers == ("Jo Penn", "Penn")
        assert question.gold_ids == ("mill#1",)


def test_line_ends_and_byte_order_marks_do_not_matter(folder):
    plain = own.load(folder).corpus.passages
    write(folder, {"passages/mill.md": ("\ufeff" + MILL).replace("\n", "\r\n")})
    assert own.load(folder).corpus.passages == plain


# ---------------------------------------------------------------- long texts


def test_long_texts_are_cut_where_sentences_end(folder):
    sentence = "Every one of these sentences has nine words here. "
    text = "# Long\n\n" + sentence * 30 + "\n\n## Part\n\n" + sentence * 2
    write(folder, {"passages/long.md": text})
    found = [p for p in own.load(folder).corpus.passages if p.id.startswith("long#")]
    assert [p.id for p in found] == ["long#1", "long#2", "long#3"]
    assert all(len(p.text.split()) <= splitter.SIZE for p in found)
    assert all(p.text.endswith("words here.") for p in found)
    # 11 sentences are 99 words; the rest of the paragraph has room for what follows it.
    assert [p.text.count("nine") for p in found] == [11, 11, 10]
    assert found[2].text.endswith("Part. " + (sentence * 2).strip())


def test_sentences_by_hand():
    def pieces(text, size):
        return list(splitter.by_sentences(text, size, lambda t: t.split(";")))

    assert pieces("a b; c d; e f", 4) == ["a b c d", "e f"]
    assert pieces("a b c d e", 2) == ["a b", "c d", "e"]  # one sentence, cut into words
    assert pieces("a b\n\nc d\n\ne", 4) == ["a b c d", "e"]  # paragraphs stay whole
    assert pieces("a b c\n\nd e", 4) == ["a b c", "d e"]
    assert pieces("# T\n\na b c", 4) == ["T. a b c"]
    assert pieces(" \n ", 4) == []
    with pytest.raises(ValueError, match="size of 1 or more"):
        pieces("a", 0)
    with pytest.raises(ValueError, match="size of 1 or more"):
        pieces("a", 0)


def test_a_text_without_blanks_is_cut_by_characters():
    text = "灯塔建于1961年。" * 9 + "「它在港口。」" * 20
    blocks = list(splitter.by_sentences(text))
    assert "".join(blocks) == text
    assert len(blocks) > 1
    assert all(block.endswith(("年。", "。」")) for block in blocks)
    assert list(splitter.by_sentences("句" * 250)) == ["句" * 100, "句" * 100, "句" * 50]
    mixed = "灯塔 lighthouse 建于1961年。"
    assert list(splitter.by_sentences(mixed)) == [mixed]
    # English stays as it was, a foreign mark in it or not.
    english = f"{'so ' * 59}so. {'so ' * 29}so； {'so ' * 29}灯 so."
    assert [len(b.split()) for b in splitter.by_sentences(english)] == [60, 61]


def test_a_word_without_end_is_warned_of(folder):
    write(folder, {"passages/code.txt": "x" * 3000})
    assert any("not cut" in w for w in own.load(folder).card["warnings"])


# ---------------------------------------------------------------- mistakes


def test_all_problems_are_told_at_once(folder):
    write(
        folder,
        {
            "passages/empty.txt": " \n",
            "passages/latin.txt": "first\nCaf\xe9".encode("latin-1"),
            "passages/binary.txt": b"a\0b",
            "passages/mill.txt": "the same name",
            "passages/bare.md": "# Only a heading\n",
            "questions.jsonl": '{"question": "Who built it?", "answer": "Jo Penn"}\n'
            '{"question": "who  built it?", "gold": "mil"}\n'
            "{not json}\n"
            "[1]\n"
            '{"id": "q1", "question": "Why?", "gold": "built by Jo Pen in"}\n'
            '{"answers": ["x"]}\n'
            '{"question": "When?", "answers": [1801], "split": "tset"}\n'
            '{"question": "Where?", "gold": "latin", "kind": 3}\n',
        },
    )
    assert problems(folder) == (
        "passages/bare.md: a heading without text; put its text in, or remove it",
        "passages/binary.txt: holds NUL bytes, so it is no text; save it as UTF-8, or take it out",
        "passages/empty.txt: empty; put its text in, or remove it",
        "passages/latin.txt: not UTF-8 (in line 2), perhaps Latin-1; save it as UTF-8",
        "passages/mill.txt: its passages would have the ids of passages/mill.md's; rename one",
        "questions.jsonl, line 1: unknown key 'answer', did you mean 'answers'?; "
        "known are id, question, answers, gold, kind, split",
        "questions.jsonl, line 2: the same question as on line 1; remove one of them",
        "questions.jsonl, line 3: not JSON (Expecting property name enclosed in double quotes); "
        "write one object a line",
        'questions.jsonl, line 4: not an object; write as {"question": "Who ...?"}',
        "questions.jsonl, line 5: the id 'q1' is that of line 1; give it one of its own",
        "questions.jsonl, line 6: no question; fill the field 'question', or remove the line",
        "questions.jsonl, line 7: 'answers' is not text or a list of texts; write as [\"1961\"]",
        "questions.jsonl, line 7: no split 'tset', did you mean 'test'?; "
        "there are train, tune, test",
        "questions.jsonl, line 8: 'kind' is not text; put it in quotes",
        "questions.jsonl, line 2: gold 'mil' is no file in passages, and no passage, "
        "did you mean 'mill'?",
        "questions.jsonl, line 5: gold 'built by Jo Pen in' stands in no passage; quote it "
        "letter by letter, within one passage, or name its file",
        # Nothing of line 8's gold: that file was told of above.
    )


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("", "no question; fill"),
        ("  ", "no question; fill"),
        ("\u00a0", "no question; fill"),
        (None, "no question; fill"),
        (0, "'question' is not text"),
        ([], "'question' is not text"),
    ],
)
def test_a_line_without_a_question_is_told_of_once(folder, question, told):
    lines = [json.dumps({"question": one}) for one in ("Who?", question)]
    write(folder, {"questions.jsonl": "\n".join(lines)})
    [problem] = problems(folder)
    assert problem.startswith(f"questions.jsonl, line 2: {told}")


def test_problems_reach_the_command_line_as_text(folder, capsys):
    write(folder, {"passages/empty.txt": ""})
    assert cli.main(["data", "card", f"folder:{folder}"]) == 2
    said = capsys.readouterr().err
    assert "1 problem\n  passages/empty.txt: empty" in said
    assert "Traceback" not in said


def test_no_such_folder_and_no_passages(tmp_path, folder):
    assert problems(tmp_path / "my text") == ("there is no such folder, did you mean 'my texts'?",)
    shutil.rmtree(folder / "passages")
    told, *_ = problems(folder)
    assert told == "passages: no such folder; make it, and put .txt and .md files into it"
    write(folder, {"passages/scan.pdf": b"%PDF"})
    told, *_ = problems(folder)
    assert told == "passages: no .txt or .md file in it; put your texts there"


def test_files_of_questions_missing_doubled_and_empty(folder):
    write(folder, {"questions.txt": "Why?"})
    assert "questions.jsonl and questions.txt are both there; keep one" in problems(folder)[0]
    (folder / "questions.txt").unlink()
    (folder / "questions.jsonl").rename(folder / "question.jsonl")
    assert problems(folder) == (
        "questions: none; write one of questions.jsonl, questions.csv, questions.txt "
        "(question.jsonl is there)",
    )
    write(folder, {"questions.txt": "\n"})
    assert problems(folder) == ("questions.txt: empty; put its text in, or remove it",)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (
            "question;answers\nWho?;Jo\n",
            "no column 'question'; the first line names the columns, with commas",
        ),
        ("question,anwsers\nWho?,Jo\n", "line 1: unknown key 'anwsers', did you mean 'answers'?"),
        ("answers\nJo\n", "line 1: no column 'question'"),
        ("question,question\nWho?,Why?\n", "the column 'question' is there twice"),
        ("question,answers\nWho, then?,Jo\n", "line 2: 3 cells, the header has 2"),
        ('question\n"Who\nwas it?"\n\na,b\n', "line 5: 2 cells, the header has 1"),
        ('question\n"Who" was it?\n', "line 2: not CSV"),
        ("question,answers\n,Jo\n", "line 2: no question"),
        ("question,answers\n", "no question in it"),
    ],
)
def test_mistakes_in_csv(folder, content, told):
    (folder / "questions.jsonl").unlink()
    write(folder, {"questions.csv": content})
    found = [p for p in problems(folder) if told in p]
    assert len(found) == 1, problems(folder)


def test_a_misspelt_question_is_told_of_once(folder):
    write(folder, {"questions.jsonl": '{"questoin": "Why?"}\n'})
    [told] = problems(folder)
    assert "unknown key 'questoin', did you mean 'question'?" in told


def test_half_a_character_is_no_text(folder):
    write(folder, {"questions.jsonl": '{"question": "Wh\\ud800?"}\n'})
    assert "surrogates not allowed" in problems(folder)[0]


def test_a_quote_must_stand_in_one_passage(folder):
    write(folder, {"passages/weir.txt": "The mill was built by Jo Penn in 1801."})
    line = {"question": "Who?", "gold": "built by  Jo Penn"}
    write(folder, {"questions.jsonl": json.dumps(line)})
    assert problems(folder) == (
        "questions.jsonl, line 1: gold 'built by  Jo Penn' stands in 2 passages (mill#1, weir#1); "
        "quote more",
    )


def test_what_may_be_meant_is_only_warned_of(folder):
    long = "The weir is made of oak and stone. " * 20
    lines = [
        {"question": "Who built the mill?", "answers": ["Jan Pen"]},
        {"question": "Is it old?", "answers": ["yes"]},
        {"question": "What is it made of?", "answers": ["jo penn"], "gold": "passages/oak.txt"},
    ]
    files = {"passages/oak.txt": long, "passages/scan.pdf": b"%PDF", "passages/mill2.md": MILL}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    made = own.load(write(folder, files | {"questions.jsonl": text}))
    assert made.card["warnings"] == (
        "passages/mill2.md: passage 1 has the text of mill#1",
        "passages/scan.pdf: not read; only .txt and .md files are",
        "questions.jsonl, line 3: gold 'passages/oak.txt' means all 2 passages of that text; "
        "name those that are needed, as oak#2",
        "questions.jsonl, line 1: no passage holds the answer 'Jan Pen'",
    )
    assert made.questions[2].gold_ids == ("oak#1", "oak#2")


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.sampled_from(own_files.QUESTIONS), st.one_of(st.text(max_size=80), st.binary(max_size=80))
)
def test_whatever_is_in_a_file_of_questions_gets_a_name(folder, name, content):
    for other in own_files.QUESTIONS:
        (folder / other).unlink(missing_ok=True)
    write(folder, {name: content})
    told = []
    try:
        made = own.load(folder)
    except FolderError as error:
        made, told = None, error.problems
    assert all(problem.startswith(name) for problem in told)
    assert told or (made.questions and made.questions_sha256)


KEYED = st.dictionaries(
    st.sampled_from([*own_files.KEYS, "other"]),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=8)),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    ),
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(KEYED, max_size=3))
def test_whatever_a_question_holds_is_read_or_told(folder, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    found = own_files.Findings()
    made = own_files.read_questions("questions.jsonl", text, found)
    assert len(made) == len(rows) or found.problems
    for entry in made:
        assert all(isinstance(v, str | tuple | None) for v in dataclasses.asdict(entry).values())


def test_a_papers_exhibits_can_be_put_on_a_folder(folder):
    """Its cells carry the folder's name without a path, and ask for no candidates."""
    from rag_repro.show.chapter import at_hand
    from rag_repro.study import papers
    from rag_repro.study.retarget import retarget

    moved = retarget(papers.load("drrag"), datasets=[f"folder:{folder}"], retriever="bm25", n=2)
    cells = moved.exhibits["table5"].cells()
    assert cells
    assert {cell.keys["dataset"] for cell in cells} == {data.label(f"folder:{folder}")}
    assert {cell.condition.configured.own_candidates for cell in cells} == {False}
    assert all(map(at_hand, cells))


@pytest.mark.parametrize("name", ["9" * 5000, "a\0b"])
def test_a_name_that_no_path_can_have_is_refused_as_any_other(name):
    with pytest.raises(data.public.UnknownName, match="no data set"):
        data.check_name(name)


# ---------------------------------------------------------------- other people's folders


def card_warnings(folder):
    return own.load(folder).card["warnings"] or ()


def test_links_are_told_of_and_not_followed(folder, tmp_path):
    write(tmp_path, {"out/far.txt": "The tower is far away."})
    links = {"far": tmp_path / "out", "mill.txt": folder / "passages/mill.md", "up": folder}
    for name, goal in links.items():
        (folder / "passages" / name).symlink_to(goal)
    made = own.load(folder)
    assert [p.id for p in made.corpus.passages] == ["mill#1", "water/the_weir#1"]
    told = [w for w in made.card["warnings"] if "link" in w]
    assert sorted(told) == [
        f"passages/{name}: not followed, a link; copy the texts into the folder" for name in links
    ]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("```bash\n# old\n```\nText.\n", "page"),
        ("~~~~\n# old\n~~~\n# old\n~~~~\n\n# New\n\nText.\n", "New"),
        ("1. Do\n\n   ```\n# old\n   ```\n\n- ```\n  # old\n  ```\n\n# New\n", "New"),
        ("```\n# never closed\n", "page"),
        ("Text.\n\n    # old\n", "page"),
        ("---\n# old\ntitle: it\n---\nText.\n", "page"),
        ("---\ntitle: it\n---\n\n# New\n\nText.\n", "New"),
        ("<!--\n# old\n-->\n# New\n\nText.\n", "New"),
        ("The bell\n========\n\nText.\n", "The bell"),
        ("The bell\n--\n\nText.\n", "The bell"),
        ("# The bell ##  \n\nText.\n", "The bell"),
        ("# In C#\n\nText.\n", "In C#"),
        (f"# a{' ' * 100_000}b\n\nText.\n", f"a{' ' * 100_000}b"),
        ("One line\nof two\n---\n\nText.\n", "page"),
        ("- item\n---\n\nText.\n", "page"),
        ("Text.\n\n---\n\nText.\n", "page"),
    ],
)
def test_what_is_a_title_and_what_only_looks_like_one(folder, text, title):
    write(folder, {"passages/page.md": text})
    [first, *_] = [p for p in own.corpus(folder).passages if p.id.startswith("page#")]
    assert first.title == title
    if "# old" in text:
        assert "# old" in " ".join(p.text for p in own.corpus(folder).passages)


def test_what_is_decomposed_is_read_composed(folder):
    line = json.dumps(
        {"question": "Where is Zoe\u0301?", "answers": ["Ma\u0308r"], "gold": "cafe\u0301"}
    )
    write(
        folder, {"passages/cafe\u0301.txt": "Zoe\u0301 Ma\u0308r is here.", "questions.jsonl": line}
    )
    made = own.load(folder)
    assert made.corpus.by_id["caf\xe9#1"].text == "Zo\xe9 M\xe4r is here."
    assert made.questions[0].text == "Where is Zo\xe9?"
    assert made.questions[0].answers == ("M\xe4r",)
    assert made.questions[0].gold_ids == ("caf\xe9#1",)


def test_a_cell_of_answers(folder):
    (folder / "questions.jsonl").unlink()
    write(folder, {"questions.csv": "question,answers\nWho?,Jo|Penn\n"})
    assert own.load(folder).questions[0].answers == ("Jo", "Penn")


@pytest.mark.parametrize("name", [b"a\x1b[2J.txt", b"a\nb.txt", b"\xff.txt", b"bad\x07/b.txt"])
def test_a_name_that_a_terminal_would_obey_is_refused(folder, name):
    path = os.path.join(os.fsencode(folder / "passages"), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write("Text.")
    [told] = problems(folder)
    assert told.isprintable()
    assert "rename it" in told


def test_an_id_that_a_terminal_would_obey_is_refused(folder):
    write(folder, {"questions.jsonl": json.dumps({"id": "a\x1b[2J", "question": "Why?"})})
    assert problems(folder) == (
        "questions.jsonl, line 1: 'id' holds a control character; take it out",
    )


def test_a_long_name_of_a_folder(folder, tmp_path):
    with pytest.raises(FolderError, match="cannot be read"):
        own.load(tmp_path / ("a" * 5000))
    assert len(own.label(folder.rename(tmp_path / ("a" * 255)))) < 90
