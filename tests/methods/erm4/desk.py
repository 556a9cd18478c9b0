"""A reader that rewrites, judges and answers from a table, and what it was asked."""

from __future__ import annotations

from rag_repro.methods import base
from rag_repro.schema import Gold, Question
from tests.lm.scripted_reader import Said, ScriptedReader
from tests.methods.scripted import Tables, answer_of

QUESTION = Question(
    "q", "who made it?", ("aa",), hops=1, gold=(Gold("a", "static", 1), Gold("d", "dynamic", 2))
)
# c is found by all three queries, b by two.
RANKINGS = {
    "who made it?": "abcdef",
    "one": "abc",
    "two": "cbd",
    "three": "ecf",
    "more": "fed",
}
LINE = " Who made the thing?**one**two**three"


class Desk(ScriptedReader):
    """Says `line` to a rewriter's prompt and " y" to any other that asks to write.

    entailed: names of passages that are entailed, with probability 0.8 (yes); others are
    neutral (no). writes: what it writes of a passage, by its name.
    """

    def __init__(self, line=LINE, entailed="abcdef", writes=None):
        self.entailed, self.writes, self.line = entailed, writes or {}, line
        super().__init__(self._said, reads=self._reads)

    def _said(self, prompt):
        asked = prompt.rpartition("\n\n")[2]
        if self.writes and "Passage: " in asked:
            return self.writes.get(named(asked), " y")
        last = prompt.rpartition("\n")[2]
        if last in ("Clear question and queries:", "Query:", "Clear question:", "Queries:"):
            return self.line if isinstance(self.line, str) else self.line[last]
        return " y"

    def _reads(self, prompt, text):
        label = text.strip()
        yes = named(prompt.rpartition("\n\n")[2]) in self.entailed
        odds = {"entailment": 0.8, "neutral": 0.1, "yes": 0.8, "no": 0.1}
        if not yes:
            odds = {"entailment": 0.2, "neutral": 0.6, "yes": 0.2, "no": 0.6}
        return Said(text, probability=[odds.get(label, 0.05)] * len(text.split()))

    @property
    def prompts(self):
        return ["".join(getattr(s, "text", s) for s in c.prompt.segments) for c in self.calls]


def named(prompt: str) -> str:
    """The passage before a judge, whose text is its name twice."""
    line = next(line for line in prompt.split("\n") if line.startswith("Passage: "))
    return line[-1]


def asked(reader: Desk) -> list[str]:
    """The prompts' own parts, without exemplars."""
    return [prompt.rpartition("\n\n")[2] for prompt in reader.prompts]


def run(settings=None, question=QUESTION, reader=None, rankings=RANKINGS, **services):
    """-> answer, reader, retriever. Without a prompt, so that no reader answers."""
    from rag_repro.methods.erm4.pipeline import erm4

    reader, tables = reader or Desk(), Tables(rankings)
    configured = base.get("erm4").configure({"per_query": 3, "k": 9, **(settings or {})})
    named_readers = {n: reader for n, kind in configured.needs.items() if kind == "reader"}
    given = {"reader": reader, "retriever": tables, **named_readers, **services}
    return answer_of(erm4, question, configured, **given), reader, tables


def events(answer, stage):
    return [e for e in answer.trace if e["stage"] == stage]


def counts(answer, *names):
    [event] = events(answer, "counts")
    return tuple(event[name] for name in names)
