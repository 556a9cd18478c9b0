"""The four papers' ideas together: each alone is its method, call for call."""

from __future__ import annotations

import dataclasses
from itertools import combinations, pairwise

import pytest

from rag_repro import engine
from rag_repro.methods import base
from rag_repro.methods.composed import COMMON, PARTS, ComposedSettings
from rag_repro.methods.stages import side_by_side
from rag_repro.schema import Answer, Question, Retrieve
from rag_repro.study import line_fields
from tests.methods import golden

BRIDGE = golden.QUESTIONS[0]
SAME = ("calls", "hits", "text", "prediction", "error")
# With a prompt, and as little else as shows that a part takes part.
LEAST = {
    "erm4": {"filter": "nli"},
    "drrag": {},
    "dragin": {"threshold": 0.03, "top_n": 4},
    "r2ag": {},
}


def same(case: dict) -> dict:
    return {name: case[name] for name in SAME}


def takes_part(given: dict) -> bool:
    return "memory" not in given and given.get("search", True)


CASES = [
    (paper, given)
    for paper, method in PARTS.items()
    for given in (*golden.CASES, *golden.MORE.get(method, ()))
    if takes_part(given) and (paper != "r2ag" or given.get("prompt") is None)
]


@pytest.mark.parametrize(("paper", "given"), CASES, ids=lambda value: str(value)[:60])
@pytest.mark.parametrize("question", golden.QUESTIONS, ids=lambda q: q.id)
def test_one_alone_is_that_paper_s_method_call_for_call(paper, given, question):
    spec = base.get(PARTS[paper])
    settings = spec.configure(given)
    common = {name: getattr(settings, name) for name in COMMON}
    own = {name: value for name, value in given.items() if name not in COMMON}
    alone = golden.case(spec, given, question)
    part = golden.case(base.get("composed"), {**common, paper: own}, question)
    assert alone["calls"], "a method that asks for nothing would show nothing"
    assert same(part) == same(alone)


@pytest.mark.parametrize("given", golden.CASES, ids=str)
@pytest.mark.parametrize("question", golden.QUESTIONS, ids=lambda q: q.id)
def test_all_off_is_one_search_and_one_reading(given, question):
    part = golden.case(base.get("composed"), given, question)
    assert same(part) == same(golden.case(base.get("single_step"), given, question))


def asked(*papers: str) -> list[dict]:
    """Every call, those of a gather one by one, with these taking part."""
    prompt = "drrag_informed" if "r2ag" in papers else "drrag"
    given = {"k": 2, "prompt": prompt, **{paper: LEAST[paper] for paper in papers}}
    case = golden.case(base.get("composed"), given, BRIDGE)
    assert case["error"] is None
    return [c for wish in case["calls"] for c in (wish if isinstance(wish, list) else [wish])]


def searched(calls: list[dict]) -> list[str]:
    return [call["retrieve"] for call in calls if "retrieve" in call]


def test_each_of_the_rewriter_s_queries_goes_through_both_retrieval_stages_and_the_selection():
    plain = searched(asked("erm4"))
    assert plain == ["film Ash", "director of Glass Harbour", "town"]
    calls = asked("erm4", "drrag")
    first = [q for q in searched(calls) if q in plain]
    second = [q for q in searched(calls) if q not in plain]
    assert first == plain
    # k = 2: one passage of the first stage, put behind its query.
    assert [q for q in plain for s in second if s.startswith(f"{q} ")] == plain
    pairs = [item for call in calls for item in call.get("score", ())]
    assert {question for question, _, _ in pairs} == set(plain)


def test_a_dynamic_reader_s_queries_take_the_question_s_place_in_the_stages_below():
    alone = searched(asked("dragin"))
    assert alone
    assert BRIDGE.text not in alone
    chosen = [item[0] for call in asked("dragin", "drrag") for item in call.get("score", ())]
    # Another selection makes another text, and other queries behind it; the first is the same.
    assert chosen[0] == alone[0]
    assert BRIDGE.text not in chosen


def test_a_dynamic_reader_s_trace_holds_what_the_stages_below_did_before_each_search():
    """Of one search: the selection's own stages, then the loop's word of what was found."""
    spec = base.get("composed")
    settings = spec.configure({"k": 2, "prompt": "drrag", "drrag": {}, "dragin": LEAST["dragin"]})
    services = dict.fromkeys(("retriever", "reader", *settings.needs), golden.World())
    [(_, answer)] = engine.run([engine.Task(BRIDGE, spec.run, settings)], services)
    stages = [event["stage"] for event in answer.trace]
    first = stages.index("retrieve")
    assert stages[0] == "decide"
    assert stages[first : first + 3] == ["retrieve", "retrieve", "judge"]
    last = stages.index("select")
    assert stages[last + 1] == "retrieve"
    assert answer.trace[last + 1]["found"] == answer.trace[last]["kept"]
    assert answer.trace[last + 1]["query"] == answer.trace[first]["query"]


def test_embeddings_stand_in_every_draft_behind_a_search_and_in_no_other():
    calls = asked("dragin", "r2ag")
    drafts = [call for call in calls if "generate" in call]
    assert "soft" not in drafts[0], "nothing was searched for yet"
    assert any("soft" in call for call in drafts)
    for before, call in pairwise(calls):
        if "encode" in before:
            assert len(call["soft"]) == 2


def test_features_are_told_of_the_question_as_it_was_rewritten():
    [encoded] = [call for call in asked("erm4", "r2ag") if "encode" in call]
    assert encoded["encode"][0] == "Who was it?"


def test_all_four_take_part_at_once():
    calls = asked(*PARTS)
    kinds = {key for call in calls for key in call}
    assert {"retrieve", "score", "read", "encode", "generate", "soft"} <= kinds


def test_the_same_parts_are_the_same_condition_however_much_is_written():
    given = {"k": 4, "prompt": "drrag", "drrag": {"threshold": 0.5}}
    short, long = ({**given, "drrag": part} for part in ({}, {"threshold": 0.5, "k1": 2}))
    spec = base.get("composed")
    made = [dataclasses.asdict(spec.configure(one)) for one in (given, short, long)]
    assert made[0] == made[1] == made[2]
    assert made[0] != dataclasses.asdict(spec.configure({**given, "drrag": {"threshold": 0.6}}))


def test_lists_of_a_file_are_taken_where_settings_are_tuples():
    made = ComposedSettings(prompt="drrag", dragin={"factors": ["entropy"]})
    assert made.parts["dragin"].factors == ("entropy",)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"drrag": {"k": 3}}, "drrag: k is the whole method's"),
        ({"drrag": {"treshold": 0.3}}, "did you mean 'threshold'"),
        ({"prompt": "drrag", "r2ag": {}}, "has no place .* and r2ag is on"),
        ({"prompt": "drrag_informed"}, "has a place .* and r2ag is off"),
        ({"erm4": {"memory": "online"}}, "has no memory"),
        ({"erm4": {"search": False}}, "what takes part searches"),
        ({"dragin": {}}, "name a prompt"),
    ],
)
def test_what_cannot_be_composed_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        base.get("composed").configure(given)


# ------------------------------------------------------------------------- side by side


def walk(*names: str):
    found = []
    for name in names:
        found.append((yield Retrieve(name, k=1)))
    return found


def gathering(*names: str):
    return (yield [Retrieve(name, k=1) for name in names])


def driven(flow) -> tuple[list, object]:
    """What a flow asks, each query answered with its own name in capitals, and its result."""
    seen, told = [], None
    try:
        while True:
            calls = flow.send(told)
            seen.append([call.query for call in calls])
            told = [call.query.upper() for call in calls]
    except StopIteration as end:
        return seen, end.value


def test_flows_in_step_are_asked_together_and_keep_their_own_results():
    seen, results = driven(side_by_side([walk("a", "b", "c"), walk("d"), gathering("e", "f")]))
    assert seen == [["a", "d", "e", "f"], ["b"], ["c"]]
    assert results == [["A", "B", "C"], ["D"], ["E", "F"]]


def test_no_flows_ask_for_nothing():
    assert driven(side_by_side([])) == ([], [])
    assert driven(side_by_side([walk()])) == ([], [[]])


def test_a_flow_that_fails_fails_the_question():
    def failing(question, settings):
        yield Retrieve("a", k=1)
        raise ValueError("no more")

    def both(question, settings):
        yield from side_by_side([failing(question, settings), walk("a", "b")])
        return Answer()

    services = {"retriever": golden.World()}
    question = Question("x", "x?", ("x",))
    [(_, answer)] = engine.run([engine.Task(question, both)], services)
    assert "no more" in answer.error


@pytest.mark.parametrize(
    "papers", [c for n in range(5) for c in combinations(PARTS, n)], ids="+".join
)
def test_a_record_can_be_kept_of_every_combination(papers):
    """Papers have events of one name, of which each record's part takes its own."""
    spec = base.get("composed")
    prompt = "drrag_informed" if "r2ag" in papers else "drrag"
    settings = spec.configure({"k": 2, "prompt": prompt} | {p: LEAST[p] for p in papers})
    services = dict.fromkeys(("retriever", "reader", *settings.needs), golden.World())
    [(_, answer)] = engine.run([engine.Task(BRIDGE, spec.run, settings)], services)
    assert answer.error is None
    assert bool(line_fields.of_knowledge(BRIDGE, answer, {})) == ("erm4" in papers)
    assert bool(line_fields.of_drafts(BRIDGE, answer, None)) == ("dragin" in papers)
    line_fields.trace_fields(BRIDGE, answer, {})
