"""What every method does on a small scripted world, stored by name and version.

A method's version is part of every record's identity. `test_golden` fails when
what a method does changes while its version does not. After raising the
version (the number in its `builtin` line):

    python -m tests.methods.golden

writes the stored traces anew; it refuses a method that changed and kept its version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from rag_repro import engine
from rag_repro.data import synthworld
from rag_repro.lm.prompts import prompt_text
from rag_repro.lm.prompts import spoken_text as kept_text
from rag_repro.methods import base
from rag_repro.schema import (
    Encode,
    Generate,
    Generation,
    Gold,
    Hit,
    Passage,
    Question,
    Read,
    Recall,
    Remember,
    Retrieve,
    Score,
    Soft,
    Trace,
)
from tests.lm.scripted_reader import Said, ScriptedReader, pieces

FOLDER = Path(__file__).parent / "golden"

PASSAGES = tuple(
    Passage(name, title, text)
    for name, title, text in (
        ("film", "Glass Harbour", "Glass Harbour is a film directed by Ilvo Brannek."),
        ("man", "Ilvo Brannek", "Ilvo Brannek was a director born in the town of Sarrow."),
        ("town", "Sarrow", "Sarrow is a town on the river Ash."),
        ("song", "Glass Harbour (song)", "Glass Harbour is a song of the band Ash."),
        ("other", "Tessaly Vroom", "Tessaly Vroom was a director born in the town of Perrin."),
        ("maker", "Vroom Instruments", "Vroom Instruments was founded by Tessaly Vroom."),
    )
)
BY_ID = {passage.id: passage for passage in PASSAGES}
QUESTIONS = (
    Question(
        "bridge",
        "In which town was the director of the film Glass Harbour born?",
        ("Sarrow",),
        kind="bridge",
        gold=(Gold("film", "static", 1), Gold("man", "dynamic", 2)),
        candidates=("song", "film", "man", "other", "town"),
        meta={"popularity": 30},
    ),
    Question(
        "single",
        "Who founded Vroom Instruments?",
        ("Tessaly Vroom",),
        kind="single",
        gold=(Gold("maker", "static", 1),),
        candidates=("maker", "other"),
        meta={"popularity": 500},
    ),
)
# Of methods whose questions must be the testbed's.
OF_WORLD = ("timing_check",)
# Of methods that read with a prompt of their own alone.
OWN_PROMPT = ("r2ag",)
# How prompts end that ask for a question's parts.
REWRITES = ("Clear question and queries:", "Queries:")
# Settings that each method is traced with, besides its own defaults.
CASES = (
    {},
    {"k": 4, "own_candidates": True},
    {"prompt": "short", "max_new_tokens": 8},
    {"prompt": "drrag"},
)
# Further settings of single methods.
MORE = {
    "given_passages": (
        {"others": 2, "kind": "random"},
        {"gold": "some", "others": 1, "prompt": "short"},
        {"gold": "none", "others": 0, "prompt": "drrag"},
    ),
    "placed_gold": (
        {"place": "middle", "prompt": "short"},
        {"place": "last", "prompt": "drrag", "own_candidates": True},
    ),
    "guess": ({"rule": "majority", "closed": "no"},),
    "two_stage": (
        {"k": 4, "first": "algorithm"},
        {"second": "next"},
        {"k": 4, "second": "random"},
    ),
    "uncrowded": ({"k": 4, "dropped": "others", "depth": 5},),
    "cis": (
        {"k": 4, "threshold": 0.9},
        {"k": 4, "pairs": "text", "threshold": 0.9},
        {"k": 4, "second": "next"},
        {"k": 4, "threshold": 0.9, "judge": "random"},
        {"k": 4, "judge": "oracle"},
        {"k": 4, "pairs": "text", "threshold": 1.0, "put_back": True},
    ),
    "cfs": (
        {"k": 4, "first": "algorithm", "depth": 3, "cap": False},
        {"k": 4, "second": "random", "threshold": 0.3},
        {"k": 4, "judge": "random"},
        {"k": 4, "judge": "similarity"},
        {"k": 4, "judge": "oracle"},
        {"k": 4, "threshold": 1.0, "put_back": True},
    ),
    "pair_check": ({"k": 2, "threshold": 0.3, "classifier": "other@256"},),
    "adaptive_retrieval": (
        {"prompt": "short", "threshold": 1000},
        {"prompt": "short", "popularity": "mentions", "threshold": 2},
        {"prompt": "short", "popularity": "shuffled"},
    ),
    "self_rag": (
        {"prompt": "selfrag", "spelling": "words", "threshold": 0.6, "w_use": 1.0},
        {"prompt": "selfrag", "mode": "always", "k": 2},
        {"prompt": "chat", "mode": "never"},
    ),
    "self_rag_on_gold": ({"prompt": "selfrag", "spelling": "words", "mode": "always"},),
    "recomp": (
        {"n_sentences": 2, "encoder": "e", "titled": True},
        {"kind": "abstractive", "compressor": "c", "summary_tokens": 9, "prompt": "drrag"},
    ),
    "crag": (
        {"upper": 0.9, "strip": 1, "n_strips": 2},
        {"upper": 1.0, "lower": 1.0, "prompt": "short"},
        {"upper": 1.0, "lower": 1.0, "incorrect": "nothing", "prompt": "drrag"},
        {"upper": 0.1, "lower": 0.1, "strip": None, "n_strips": 1, "prompt": "short"},
    ),
    "long_llmlingua": (
        {"rate": 0.3, "budget": 0, "prompt": "short"},
        {"dynamic_ratio": 0.8, "order": "original", "k": 5, "prompt": "drrag"},
        {"rate": 1.0, "compressor": "c", "prompt": "short"},
    ),
    "ircot": (
        {"prompt": "short", "k": 3, "max_sentences": 2, "longest": 9, "shown": 4},
        {"prompt": "short", "answer": "chain", "chain": "drrag", "max_sentences": 2},
    ),
    "dynamic": (
        {"threshold": 0.01, "top_n": 4},
        {"threshold": 0.01, "context": "prompt", "heads": "max", "prompt": "drrag"},
        {"timing": "flare", "query": "sure_sentence"},
        {
            "timing": "flare",
            "query": "sure_sentence",
            "doubt_of": "sentence",
            "documents": "one_draft",
        },
        {"timing": "sentence", "query": "last_sentence", "first": False},
        {"timing": "window", "query": "last_tokens", "window": 4, "max_new_tokens": 12},
        {"timing": "random", "rate": 0.2, "query": "random_words", "top_n": 3},
        {"timing": "never", "first": True, "ask_again": "bare"},
    ),
    "timing_check": ({"where": "sentence", "unit": "word"}, {"alone": True, "own_row": True}),
    "influence_check": ({"pairs": 1, "reach": 3},),
    "query_check": (
        {"threshold": 0.01, "top_n": 4, "few": 2},
        {"threshold": 0.1, "top_n": 25, "first": True, "heads": "max"},
    ),
    "r2ag": (
        {"k": 3, "inputs": "shuffled", "columns": ["neighbour", "relevance"]},
        {"k": 3, "similarity": "dot", "exchange": True, "own_candidates": True},
        {"k": 3, "inputs": "gold"},
        {"k": 3, "inputs": "constant"},
        {"k": 3, "inputs": "free", "exchange": True},
        {"prompt": None},
    ),
    "attention_check": (
        {"k": 3, "layers": 2, "inputs": "shuffled", "columns": ["neighbour"]},
        {"k": 3, "layers": 1, "inputs": "free", "exchange": True},
        {"k": 2, "layers": 2, "prompt": "r2ag_rag"},
    ),
    "likelihood_check": (
        {"k": 3, "inputs": "gold", "answers": 1},
        {"k": 2, "prompt": "r2ag_rag"},
    ),
    "erm4": (
        {"rewrite": "query", "filter": "nli", "hypothesis": "weak", "prompt": "short"},
        {"rewrite": "apart", "queries": 2, "order": "sequential", "per_query": 2},
        {"rewrite": "none", "filter": "ask", "explain": True, "keep": "random", "judge": "j"},
        {"filter": "nli", "label": "written", "explain": True, "back_off": "top"},
        {"filter": "nli", "hypothesis": "by_hops", "judge": "j", "titled": False},
        {"filter": "gold", "asked": "original", "matched": True},
        {"search": False, "rewriter": "r", "prompt": "short"},
        {"memory": "filled", "per_query": 2, "tau": 0.5, "theta": 3, "beside": True},
        {"memory": "filled", "trigger": "exact", "filter": "nli", "filter_memory": False},
        {"memory": "online", "content": "filtered", "filter": "gold", "per_query": 2},
    ),
    "composed": (
        {"prompt": "drrag", "k": 2, "erm4": {"filter": "nli", "judge": "j"}, "drrag": {}},
        {"prompt": "drrag", "k": 2, "drrag": {}, "dragin": {"threshold": 0.03, "top_n": 4}},
        {"prompt": "drrag_informed", "dragin": {"threshold": 0.03, "top_n": 4}, "r2ag": {}},
        {
            "prompt": "drrag_informed",
            "k": 2,
            "erm4": {"rewriter": "r", "filter": "nli"},
            "drrag": {"threshold": 0.3},
            "dragin": {"threshold": 0.03, "top_n": 4},
            "r2ag": {"inputs": "free"},
        },
    ),
    "dragin_released": ({"threshold": 0.3, "top_n": 5}, {"threshold": 0.3, "cut": "token"}),
    "adaptive_rag": (
        {"prompt": "short", "judge": "random", "shares": {"A": 0.3, "B": 0.3, "C": 0.4}, "seed": 1},
        {
            "prompt": "short",
            "judge": "random",
            "shares": {"A": 0, "B": 0, "C": 1},
            "max_sentences": 1,
        },
    ),
}


class World:
    """All services in one: words in common rank passages, and the reader repeats a word."""

    def __init__(self):
        self.calls: list[dict] = []

    def search(self, queries, k, within=None):
        found = []
        for place, query in enumerate(queries):
            allowed = None if within is None else within[place]
            words = set(query.lower().split())
            ranked = sorted(
                (-len(words & set(p.text.lower().split())), p.id)
                for p in PASSAGES
                if allowed is None or p.id in allowed
            )
            found.append(
                [Hit(BY_ID[n], float(-s), r) for r, (s, n) in enumerate(ranked[:k], start=1)]
            )
        return found

    def generate(self, calls):
        made = []
        for call in calls:
            if call.trace and not call.watch:
                made += ScriptedReader(doubting).generate([call])
                continue
            said = f"It is so. Answer: <{prompt_text(call.prompt)[-9:]}>; so\nmore"
            if prompt_text(call.prompt).endswith(REWRITES):
                said = " Who was it?**film Ash**director of Glass Harbour**town"
            made.append(
                watching(call, said)
                if call.watch
                else Generation(said, (1, 2, 3), (0, 3, 6), "eos", 9, 9)
            )
        return made

    def read(self, calls):
        """The reader is sure of all it reads; a compressor of what prompt and text decide."""
        made = []
        for call in calls:
            reads = None if call.service == "reader" else wondering
            made += ScriptedReader(reads=reads).read([call])
        return made

    def encode(self, texts):
        """A unit vector that every letter of a text decides."""
        drawn = [np.random.default_rng(int(_hash(text), 16)).normal(size=4) for text in texts]
        return np.array([v / np.linalg.norm(v) for v in drawn], dtype=np.float32)

    def recall(self, query, k):
        """Passages whose similarity every letter of the query decides."""
        drawn = {p.id: int(_hash(f"{query}\x1f{p.id}"), 16) % 1000 / 1000 for p in PASSAGES}
        ranked = sorted(drawn, key=lambda name: (-drawn[name], name))[:k]
        return [Hit(BY_ID[name], drawn[name], r) for r, name in enumerate(ranked, start=1)]

    def remember(self, passages):
        """What is told is in the calls."""

    def score(self, items):
        """A probability that every letter of an item decides, whatever stands beside it."""
        drawn = [int(_hash("\x1f".join(item)), 16) % 1000 for item in items]
        return np.array(drawn, dtype=np.float32) / 1000


def doubting(prompt: str) -> Said:
    """Some sentences, whose every token's probability and entropy the prompt decides."""
    drawn = [int(_hash(f"{prompt}\x1f{i}"), 16) % 1000 for i in range(99)]
    words = ["Brannek", "was", "born", "in", "Sarrow.", "the", "film", "Vroom", "Ash.", "it"]
    said = "".join(f" {words[n % 10]}" for n in drawn[:9]) + " Then. So the answer is Ash."
    n = len(pieces(said))
    odds = [x / 1000 for x in drawn]
    return Said(said, probability=odds[:n], entropy=[3 * x for x in odds[n : 2 * n]])


def wondering(prompt: str, text: str) -> Said:
    """A text whose every token's probability the prompt and all of the text decide."""
    n = len(pieces(text))
    drawn = [int(_hash(f"{prompt}\x1f{text}\x1f{i}"), 16) % 1000 for i in range(n)]
    return Said(text, probability=[(x + 1) / 1000 for x in drawn])


def watching(call, said: str) -> Generation:
    """What is said between some watched tokens, their probabilities decided by the prompt."""
    words = [call.watch[0], said, *call.watch[2::3]][: call.max_new_tokens]
    offsets = tuple(len("".join(words[:i])) for i in range(len(words)))
    drawn = [
        [int(_hash(f"{prompt_text(call.prompt)}\x1f{i}{name}"), 16) % 1000 for name in call.watch]
        for i in range(len(words))
    ]
    watched = np.array(drawn, dtype=np.float32) / 1000
    trace = Trace(watched[:, 0], watched[:, 1]) if call.trace else None
    numbers = tuple(range(len(words)))
    return Generation("".join(words), numbers, offsets, "eos", 9, 9, trace, watched)


def told(call) -> dict:
    """A call as plain data; a prompt by its hash, so that each letter of it counts."""
    if isinstance(call, Retrieve):
        within = None if call.within is None else list(call.within)
        said = {"retrieve": call.query, "k": call.k, "within": within}
        return said if call.service == "retriever" else said | {"service": call.service}
    if isinstance(call, Generate):
        stop = [getattr(rule, "name", rule) for rule in call.stop]
        return _soft(call) | {
            "generate": _hash(prompt_text(call.prompt)),
            "kinds": [type(segment).__name__ for segment in call.prompt.segments],
            "chat": call.prompt.chat,
            "max_new_tokens": call.max_new_tokens,
            "stop": stop,
            "trace": call.trace,
            "watch": list(call.watch),
            "sampling": call.sampling and dataclasses.asdict(call.sampling),
            "service": call.service,
        }
    if isinstance(call, Read):
        text = call.text if isinstance(call.text, str) else kept_text(call.text)
        read = {
            "read": _hash(prompt_text(call.prompt) + "\x1f" + text),
            "layers": list(call.layers),
            **_soft(call),
        }
        return read if call.service == "reader" else read | {"service": call.service}
    if isinstance(call, Encode):
        return {"encode": list(call.texts), "service": call.service}
    if isinstance(call, Score):
        return {"score": [list(item) for item in call.items], "service": call.service}
    if isinstance(call, Recall):
        return {"recall": call.query, "k": call.k}
    if isinstance(call, Remember):
        return {"remember": [passage.id for passage in call.passages]}
    raise TypeError(f"no way to tell {call!r}: add it to tests/methods/golden.py")


def _soft(call: Generate | Read) -> dict:
    segments = call.prompt.segments if call.prompt else ()
    soft = [s for s in segments if isinstance(s, Soft)]
    rows = [np.round(s.features[s.index].astype(float), 5).tolist() for s in soft]
    return {"soft": rows} if soft else {}


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def spied(method, calls: list):
    """The method, noting each of its wishes as it makes them."""

    def run(question, settings):
        flow = method(question, settings)
        result = None
        try:
            while True:
                wish = flow.send(result)
                gather = isinstance(wish, list)
                calls.append([told(c) for c in wish] if gather else told(wish))
                result = yield wish
        except StopIteration as stop:
            return stop.value

    return run


def _asked(name: str) -> tuple[Question, ...]:
    if name not in OF_WORLD:
        return QUESTIONS
    return synthworld.build("B", n_questions=3, kinds=["compositional2"]).questions[:2]


def trace(spec: base.MethodSpec) -> dict:
    """The method's calls, hits and predictions in every case and for every question."""
    common = [c for c in CASES if "prompt" not in c or spec.name not in OWN_PROMPT]
    cases = [
        case(spec, given, question)
        for given in (*common, *MORE.get(spec.name, ()))
        for question in _asked(spec.name)
    ]
    return {"method": spec.name, "version": spec.version, "cases": cases}


def case(spec: base.MethodSpec, given: dict, question: Question) -> dict:
    """The method's calls, hits and prediction for one question with these settings."""
    calls: list = []
    settings = spec.configure(given)
    services = dict.fromkeys(("retriever", "reader", *settings.needs), World())
    task = engine.Task(question, spied(spec.run, calls), settings)
    [(_, answer)] = engine.run([task], services)
    return {
        "settings": given,
        "question": question.id,
        "calls": calls,
        "hits": [hit.passage.id for hit in answer.hits],
        "text": answer.text,
        "prediction": answer.prediction,
        "error": answer.error,
    }


def stored(name: str) -> dict | None:
    file = FOLDER / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def problem(spec: base.MethodSpec) -> str | None:
    """What is wrong between a method and its stored trace, and what to do; None: nothing."""
    renew = "run `python -m tests.methods.golden`"
    then, now = stored(spec.name), json.loads(json.dumps(trace(spec)))
    if then is None:
        return f"{spec.name} has no stored trace: {renew}"
    if moved := kept_but_changed(spec, then, now):
        return (
            f"{spec.name} does something else with settings that kept their version "
            f"({'; '.join(moved)}): its `since` must say when these changed"
        )
    if then["version"] != now["version"]:
        return (
            f"{spec.name} is at version {now['version']}, its stored trace at "
            f"{then['version']}: {renew}"
        )
    if then != now:
        differ = [
            f"{b['settings']} {b['question']}"
            for a, b in zip(then["cases"], now["cases"], strict=False)
            if a != b
        ]
        return (
            f"{spec.name} does something else than at version {then['version']} "
            f"({'; '.join(differ) or 'other cases'}): raise the version in its `builtin` line to "
            f"{then['version'] + 1}, since records of version {then['version']} no longer say "
            f"what it does, then {renew}. If only this scripted world was changed, delete "
            f"{FOLDER.name}/{spec.name}.json first"
        )
    return None


def kept_but_changed(spec: base.MethodSpec, then: dict, now: dict) -> list[str]:
    """Cases of a raised version whose settings kept an older one, and that changed all the same."""
    if then["version"] == now["version"]:
        return []
    made = {(json.dumps(c["settings"]), c["question"]): c for c in now["cases"]}
    return [
        f"{case['settings']} {case['question']}"
        for case in then["cases"]
        if spec.version_of(spec.configure(case["settings"])) <= then["version"]
        and case != made.get((json.dumps(case["settings"]), case["question"]), case)
    ]


def renew() -> int:
    """Write every trace whose version was raised -> how many were refused."""
    FOLDER.mkdir(exist_ok=True)
    refused = 0
    for name in base.METHODS:
        spec, then = base.get(name), stored(name)
        wrong = problem(spec)
        if wrong is None:
            continue
        if then is not None and (
            then["version"] == spec.version
            or kept_but_changed(spec, then, json.loads(json.dumps(trace(spec))))
        ):
            print(wrong, file=sys.stderr)
            refused += 1
            continue
        text = json.dumps(trace(spec), indent=1, ensure_ascii=False) + "\n"
        (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")
    return refused


if __name__ == "__main__":
    sys.exit(1 if renew() else 0)
