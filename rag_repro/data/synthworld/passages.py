"""Passages of a block: three to six sentences about each thing, in the plain words of a lead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from rag_repro.data.synthworld.dials import PRESETS, Dials
from rag_repro.data.synthworld.draft import BLOCK, Thing
from rag_repro.data.synthworld.invented_names import WORLDS
from rag_repro.data.synthworld.wordings import options, read_table, wordings
from rag_repro.schema import Passage

MIN_SENTENCES, MAX_SENTENCES = 3, 6


class Writer:
    """Writes the passages of one world; the tables are laid out once."""

    def __init__(self, world: str, seed: int, dials: Dials):
        which = PRESETS[world].wording
        table = read_table("phrases.yaml")
        self.world, self.seed, self.dials = world, seed, dials
        self.number = WORLDS.index(world)
        self.says = {name: w.says for name, w in wordings(which).items()}
        self.leads = {k: options(v[which]) for k, v in table["leads"].items()}
        self.fillers = options(table["fillers"][which])
        words = read_table("words.yaml")["fillers"]
        self.nouns = words["nouns"].split()
        self.adjectives = words["adjectives"].split()
        self.hooks = options(table["hooks"][which])
        self.lived = options(table["lived"][which])
        self.subjects = {key: forms[which] for key, forms in table["subjects"].items()}

    def block(self, number: int, things: list[Thing]) -> Iterator[Passage]:
        """The passages of a block's things, in their order."""
        random = Random(f"{self.seed}/{self.number}/{number}/words").random
        first = number * BLOCK
        for i, thing in enumerate(things, first):
            yield Passage(f"{self.world}-p{i:06d}", thing.title, self.text(thing, random))

    def text(self, thing: Thing, random) -> str:
        """3 to 6 sentences that state all facts of a thing, each fact once."""
        kind, facts, says = thing.kind, thing.facts, self.says
        clauses, dates = [], ""
        skip: tuple[str, ...] = ()
        if kind == "person" and "birth_date" in facts and random() < 0.5:
            skip = ("birth_date", "death_date")
            died = facts.get("death_date")
            form = self.lived[0 if died else 1]
            dates = " " + form.format(b=facts["birth_date"][1], d=died[1] if died else "")
        for relation, (other, literal, _) in facts.items():
            if relation in skip:
                continue
            forms = says[relation]
            before, after = forms[int(random() * len(forms))]
            clauses.append(before + (other.title if other is not None else literal) + after)
        if thing.about:
            about = self.subjects["person" if kind == "person" else "work"]
            clauses.append(about.format(a=thing.about))
        leads = self.leads[kind]
        lead = leads[int(random() * len(leads))].format(
            s=thing.name,
            d=dates,
            o=thing.occupation,
            a="an" if thing.occupation and thing.occupation[0] in "aeiou" else "a",
            b="is" if kind == "person" and thing.died is None else "was",
        )
        return " ".join(self._sentences(thing, lead, clauses, random))

    def _sentences(self, thing: Thing, lead: str, clauses: list[str], random) -> list[str]:
        again = ("It",)
        if thing.gender is not None:
            again = ("He" if thing.gender == "male" else "She", thing.name.split(" ", 1)[1])
        opening = f"{lead} {clauses[0]}." if clauses else _without_clause(lead)
        rest = clauses[1:]
        fewest = -(-len(rest) // 2)
        groups = min(fewest + int(random() * (len(rest) - fewest + 1)), MAX_SENTENCES - 1)
        sentences = [opening]
        for g in range(groups):
            part = rest[g * len(rest) // groups : (g + 1) * len(rest) // groups]
            subject = again[int(random() * len(again))]
            if len(part) == 1:
                sentences.append(f"{subject} {part[0]}.")
            else:
                sentences.append(f"{subject} {', '.join(part[:-1])} and {part[-1]}.")
        if thing.hook and len(sentences) < MAX_SENTENCES:
            line = self.hooks[int(random() * len(self.hooks))]
            named = [
                self.subjects["name"].format(x=words, a=about) if about else words
                for words, about in thing.hook
            ]
            sentences.append(line.replace("{w}", _listed(named)))
        wanted = max(MIN_SENTENCES - len(sentences), int(random() < self.dials.fillers))
        wanted = min(wanted, MAX_SENTENCES - len(sentences))
        if wanted:
            start = int(random() * len(self.fillers))
            for j in range(wanted):
                line = self.fillers[(start + j) % len(self.fillers)].format(
                    j=self.adjectives[int(random() * len(self.adjectives))],
                    n=self.nouns[int(random() * len(self.nouns))],
                    m=self.nouns[int(random() * len(self.nouns))],
                )
                sentences.insert(1 + int(random() * len(sentences)), line)
        return sentences


def _without_clause(lead: str) -> str:
    """A lead for a thing of which nothing is told: "X is a song." of "X is a song that"."""
    return lead.rsplit(" ", 1)[0] + "."


def _listed(words: Sequence[str]) -> str:
    """ "X", "X and Y", "X, Y and Z"."""
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"
