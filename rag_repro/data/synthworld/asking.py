"""How questions are put into words, with more or fewer of the words that passages use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_repro.data.synthworld.wordings import options, read_table, wording_set, wordings
from rag_repro.data.synthworld.world import Entity, World

Draw = Callable[[], float]


def pick(items: Sequence, draw: Draw):
    return items[int(draw() * len(items))]


class Asker:
    """Words the questions of one world. `draw` is a source of numbers in [0, 1)."""

    def __init__(self, world: World):
        self.which = wording_set(world.name)
        self.overlap = world.dials.wording_overlap
        self.wordings = wordings(self.which)
        self.table = read_table("phrases.yaml")

    def mention(self, entity: Entity, draw: Draw) -> str:
        """An entity by its title, perhaps with what it is: "the film X"."""
        forms = self.table["mentions"].get(entity.kind)
        if forms is None or entity.name != entity.title:
            text = entity.title
        else:
            text = pick(options(forms[self.which]), draw).replace("{x}", entity.title)
        if entity.about and forms is not None:
            text = self.table["subjects"]["name"][self.which].format(x=text, a=entity.about)
        return text

    def ask(self, relation: str, subject: str, draw: Draw) -> str:
        """A question for the object of a relation; subject is a mention or noun phrase."""
        wording = self.wordings[relation]
        forms = wording.near if draw() < self.overlap else wording.far
        return pick(forms, draw).replace("{x}", subject)

    def phrase(self, relation: str, subject: str, draw: Draw) -> str:
        """A noun phrase for the object of a relation: "the director of X"."""
        wording = self.wordings[relation]
        forms = wording.np_near if draw() < self.overlap else wording.np_far
        return pick(forms, draw).replace("{x}", subject)

    def nested(self, relations: Sequence[str], subject: str, draw: Draw) -> str:
        """A question for the end of a chain of relations, nested into one sentence."""
        for relation in relations[:-1]:
            subject = self.phrase(relation, subject, draw)
        return self.ask(relations[-1], subject, draw)

    def wordings_of(self, relations: Sequence[str], entity: Entity) -> tuple[str, ...]:
        """All ways to ask for the end of a chain; the same question in other words."""
        subjects = [entity.title]
        for relation in relations[:-1]:
            wording = self.wordings[relation]
            forms = wording.np_near + wording.np_far
            subjects = [form.replace("{x}", s) for form in forms for s in subjects]
        last = self.wordings[relations[-1]]
        return tuple(f.replace("{x}", s) for f in last.near + last.far for s in subjects)

    def form(self, section: str, key: str | None, draw: Draw, **slots: str) -> str:
        """A wording from the table of phrases, filled."""
        forms = self.table[section]
        if key is not None:
            forms = forms[key]
        return pick(options(forms[self.which]), draw).format(**slots)

    def comparison(self, relation: str, way: str, draw: Draw, **slots: str) -> str:
        """way: "up", "down", or as a clause "of_up", "of_down"."""
        forms = self.table["compare"][relation][way][self.which]
        return pick(options(forms), draw).format(**slots)
