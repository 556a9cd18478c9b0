"""From a method's common name to what runs: settings, reader and retriever, checked before work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rag_repro.lm.endpoint import PREFIX
from rag_repro.lm.weights import FORMER
from rag_repro.methods import base, systems
from rag_repro.methods.systems import NEEDS, System
from rag_repro.study import names

READER = "smollm2-135m"
RETRIEVER = "bm25"
PROMPT = "chat"  # plain words: any reader that was taught to chat can follow them
DEFAULT = "default"


class CannotServe(ValueError):
    """A reader that a method cannot work with; the message names what would serve."""


@dataclass(frozen=True)
class Setup:
    """What a name, a reader, a retriever and settings come to."""

    system: System
    settings: Mapping[str, Any]
    retriever: Any
    reader: str | None

    @property
    def spec(self) -> base.MethodSpec:
        return self.system.spec

    @property
    def configured(self) -> base.Settings:
        """Raises ValueError, with the nearest name, for an unknown setting or a wrong value."""
        return replace(self.spec, name=self.system.name).configure(self.settings)


def setup(
    name: str, settings: Mapping[str, Any], *, retriever: Any = DEFAULT, reader: str | None = READER
) -> Setup:
    """The system of that name with these settings over its own.

    retriever: "default" is that of the book's main result. reader: the one trained over it serves
    where the system needs a trained one. Raises ValueError for an unknown name or setting, as
    CannotServe for a reader that cannot serve the method.
    """
    system = systems.get(name)
    prompt = {"prompt": PROMPT} if reader else {}
    given = {**prompt, **system.settings, **({} if reader else {"prompt": None}), **settings}
    if isinstance(retriever, str) and retriever == DEFAULT:
        retriever = system.retriever or RETRIEVER
    if reader is None and (given["prompt"] is not None or system.needs in WRITING):
        raise CannotServe(f"{name} needs a reader; name one, as reader={READER!r}")
    made = Setup(system, given, retriever, reader)
    made.configured  # noqa: B018 (a wrong setting is refused here)
    return replace(made, reader=reader and _serving(system, reader, settings))


WRITING = ("attention", "probabilities")
"""Needs of methods that search while they write: without a reader they do nothing."""


def _serving(system: System, reader: str, settings: Mapping[str, Any]) -> str:
    """The reader itself, or the one of the system's that was trained over it."""
    if not system.needs:
        return reader
    why = f"{system.name} {NEEDS[system.needs]}"
    if reader.startswith(PREFIX):
        serving = (system.readers or (READER,))[0]
        raise CannotServe(
            f"{why}, which no endpoint gives; name a reader on this machine, as reader={serving!r}"
        )
    if not system.readers or reader in system.readers:
        return reader
    for trained in system.readers:
        if names.trained_over(trained) == reader:
            return trained
    if system.needs == "embeddings":
        if names.trained_for(reader) == "r2ag" or (Path(reader) / FORMER).is_file():
            return reader
        how = "`rag-repro train` makes one over another base"
    elif "spelling" in settings:  # whoever says how it spells them, has a reader that does
        return reader
    else:
        how = "of another that was trained so say how it spells them, as spelling='released'"
    raise CannotServe(
        f"{why}, for which {reader} was not trained; name one that was, as "
        f"reader={' or '.join(map(repr, system.readers))}; {how}"
    )


def listing() -> list[dict[str, str]]:
    """Every system in words: name, does, paper, needs, costs, settings with defaults, example."""
    made = []
    for name, system in systems.known().items():
        chosen = setup(name, {})
        needs = []
        if system.needs:
            needs.append(f"a reader on this machine, since it {NEEDS[system.needs]}")
        trained = {chosen.reader: "reader", **chosen.configured.needs}
        needs += [f"{word} {part}" for part, word in trained.items() if part != READER]
        settings = {
            key: chosen.settings.get(key, v) for key, v in asdict(chosen.configured).items()
        }
        made.append(
            {
                "name": name,
                "does": system.does,
                "paper": system.paper,
                "needs": "; ".join(needs) or "any reader",
                "costs": system.costs,
                "retriever": chosen.retriever,
                "settings": ", ".join(
                    f"{key}={value if isinstance(value, str) else repr(value)}"
                    for key, value in settings.items()
                ),
                "example": f'ask(QUESTION, "folder:PATH", method="{name}")',
            }
        )
    return made
