"""A workshop that answers from a table, and methods that take unequal numbers of steps."""

from __future__ import annotations

from rag_repro.engine import MethodError
from rag_repro.methods import base
from rag_repro.methods.base import MethodSpec, Settings
from rag_repro.schema import (
    Answer,
    Generate,
    Generation,
    Gold,
    Hit,
    Passage,
    Prompt,
    Question,
    Recall,
    Remember,
    Retrieve,
)
from rag_repro.schema.dataset import Corpus, Dataset
from rag_repro.study.conditions import Condition

PASSAGES = tuple(Passage(f"p{i}", f"Title {i}", f"secret text {i}") for i in range(6))
# Question i needs p<i>, and its method searches 3, 1, 2, 3, 1, 2 times.
QUESTIONS = tuple(
    Question(f"q{i}", f"query {i}", (f"says {i}",), kind="bridge", gold=(Gold(f"p{i}", "static"),))
    for i in range(6)
)
STEPS = (3, 1, 2, 3, 1, 2)
DATASET = Dataset("little", QUESTIONS, Corpus("little", PASSAGES))


def number(question: Question) -> int:
    return int(question.id[1:])


def walk(question, settings):
    """As many searches as its number says, then one reading."""
    hits = ()
    for _ in range(STEPS[number(question)]):
        hits = yield Retrieve(question.text, k=settings.k)
    out = yield Generate(Prompt.from_segments(question.text), max_new_tokens=4)
    return Answer(text=out.text, prediction=out.text, hits=hits)


def stumble(question, settings):
    """As `walk`, but question 2 fails before its reader is asked."""
    if number(question) == 2:
        raise MethodError("no way on")
    return (yield from walk(question, settings))


def fall(question, settings):
    """Fails every question."""
    yield Retrieve(question.text, k=1)
    raise MethodError("nobody gets here")


def gather(question, settings):
    """Hands on what earlier questions left in the reservoir, and leaves its own hits."""
    known = yield Recall(question.text, k=9)
    hits = yield Retrieve(question.text, k=1)
    yield Remember(tuple(hit.passage for hit in hits))
    return Answer(hits=(*known, *hits))


METHODS = {m.__name__: MethodSpec(m.__name__, 1, m, Settings, "") for m in (walk, stumble, fall)}
METHODS["gather"] = MethodSpec("gather", 1, gather, Settings, "")


def use_methods(monkeypatch):
    """Conditions know the methods of this module."""
    monkeypatch.setattr(base, "get", METHODS.__getitem__)


def condition(method="walk", **changes):
    given = {"settings": {"k": 2}, "retriever": "tables", "reader": "echo", **changes}
    return Condition("little", method, **given)


class Tables:
    """Finds p<i>, p<i+1> for question i; is interrupted at search number `stop`."""

    fingerprint = "tables-1"

    def __init__(self, stop=None, shift=0):
        self.stop, self.shift, self.asked = stop, shift, []

    def search(self, queries, k, within=None):
        found = []
        for query in queries:
            self.asked.append(query)
            if len(self.asked) == self.stop:
                raise KeyboardInterrupt
            first = int(query.split()[1]) + self.shift
            chosen = [PASSAGES[(first + j) % len(PASSAGES)] for j in range(k)]
            found.append([Hit(p, 1.0 / (j + 1), j + 1) for j, p in enumerate(chosen)])
        return found


class Echo:
    """Reader that answers question i with "says i"."""

    fingerprint = "echo-1"

    def generate(self, calls):
        texts = [f"says {call.prompt.segments[0].split()[1]}" for call in calls]
        return [Generation(text, (1, 2), (0, 4), "eos", 5, 5) for text in texts]


class Reservoir:
    """Keeps what it is given, in order."""

    fingerprint = "reservoir-1"
    ordered = True

    def __init__(self):
        self.kept = []

    def recall(self, query, k):
        return [Hit(p, 1.0, i) for i, p in enumerate(self.kept[:k], start=1)]

    def remember(self, passages):
        self.kept += [p for p in passages if p not in self.kept]


class Shop:
    """Stands in for `services.Workshop`."""

    def __init__(self, *, stop=None, shift=0, reservoir=False, corpus="c1"):
        self.retriever, self.corpus = Tables(stop, shift), corpus
        self.made = {"retriever": self.retriever, "reader": Echo()}
        if reservoir:
            self.made["reservoir"] = Reservoir()

    def dataset(self, name, split):
        assert (name, split) == ("little", "test")
        return DATASET

    def lacks(self, condition, *, small=0):
        return None

    def services(self, condition):
        return self.made

    def fingerprint(self, condition):
        return {"corpus": self.corpus}
