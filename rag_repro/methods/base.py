"""What every method shares: its settings, its name, its version.

A method is listed in `METHODS` by the name that conditions use, or registered
from outside the package with the decorator `method`. Its version is part of
every record's identity: raise it when its answers can change, and only then
(a golden-trace test fails when they change without it).
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from rag_repro.engine import Method
from rag_repro.methods.reading import PROMPTS
from rag_repro.plain import fits, hints, shortened
from rag_repro.words import choices, nearest


@dataclass(frozen=True)
class Within:
    """In a setting's annotation: a number from `low` to `high`."""

    low: float
    high: float = inf

    def __str__(self):
        if self.high == inf:
            return f"be at least {self.low}"
        return f"lie between {self.low} and {self.high}"


Count = Annotated[int, Within(1)]
Share = Annotated[float, Within(0, 1)]

_limits = cache(partial(get_type_hints, include_extras=True))


def check(name: str, value: Any, hint: Any) -> None:
    """Refuse a value of a setting that is none of its `Literal`, or not `Within` its limits."""
    for one in get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]:
        if value is not None and get_origin(one) is Literal:
            one_of(name, value, get_args(one))
        for limit in getattr(one, "__metadata__", ()) if value is not None else ():
            if isinstance(limit, Within) and not limit.low <= value <= limit.high:
                raise ValueError(f"{name} is {value}; it must {limit}")


@dataclass(frozen=True)
class Settings:
    """What all methods can be told, and what a value may be: its type, a `Literal`, limits.

    k: passages given to the reader, at most.
    own_candidates: search only the passages that came with the question (term
        statistics stay those of the whole corpus) instead of the whole corpus.
    prompt: the reading prompt's name (`methods.reading.PROMPTS`); None: stop
        after retrieval, no reader is called.
    max_new_tokens: longest answer of the reader, in tokens.
    """

    k: Count = 3
    own_candidates: bool = False
    prompt: str | None = None
    max_new_tokens: Count = 64

    def __post_init__(self):
        for name, hint in _limits(type(self)).items():
            check(name, getattr(self, name), hint)
        if self.prompt is not None and self.prompt not in PROMPTS:
            raise ValueError(
                f"there is no prompt {self.prompt!r}{nearest(self.prompt, PROMPTS)}; "
                f"there are: {', '.join(PROMPTS)}"
            )

    @property
    def answers(self) -> bool:
        """Whether a reader is asked for the answer, or only for a compression or a judgement."""
        return True

    @property
    def needs(self) -> Mapping[str, str]:
        """Services beside "reader" and "retriever", by name, and of which kind each is.

        Kinds: "retriever", "scorer", "encoder", "reader", "reservoir".
        """
        return {}


@dataclass(frozen=True)
class MethodSpec:
    """A method as conditions know it.

    since: of settings, the version since which they have answered the same, where a change
    did not touch them all. code: of a method from outside the package, a hash of its source, which
    stands in its records' identity beside the version.
    """

    name: str
    version: int
    run: Method
    settings: type[Settings]
    source: str
    since: Callable[[Any], int] | None = None
    code: str = ""

    def version_of(self, settings: Settings) -> int:
        """What stands in the identity of records made with these settings."""
        return self.version if self.since is None else self.since(settings)

    def configure(self, given: Mapping[str, Any]) -> Settings:
        """Settings from plain data; an unknown name is refused."""
        known = {f.name for f in dataclasses.fields(self.settings)}
        for name in given:
            if name not in known:
                raise ValueError(
                    f"method {self.name!r} has no setting {name!r}"
                    f"{nearest(name, known)}; it has: {', '.join(sorted(known))}"
                )
        for name, value in given.items():
            wanted = hints(self.settings)[name]
            if isinstance(value, str):
                check(name, value, wanted)
            if not fits(value, wanted):
                raise ValueError(
                    f"method {self.name!r}: {name} cannot be {shortened(repr(value), 60)}; "
                    f"it is {getattr(wanted, '__name__', wanted)}"
                )
        return self.settings(**given)


def one_of(setting: str, given: object, known: Iterable[str]) -> None:
    """Refuse a value that the setting does not know, with the nearest one."""
    if given not in known:
        raise ValueError(
            f"{setting} is {given!r}{nearest(given, known)}; it is one of: {', '.join(known)}"
        )


def fill_or_refuse(settings: Settings, used: bool, defaults: Mapping[str, Any], by: str) -> None:
    """Give settings that were left out (None) their defaults; not `used`, refuse those given.

    by: the choice under which they would do nothing.
    """
    for name, default in defaults.items():
        if used and getattr(settings, name) is None:
            object.__setattr__(settings, name, default)
        elif not used and getattr(settings, name) is not None:
            raise ValueError(f"{name} would do nothing with {by}; leave it out")


# name -> the module that registers it with `builtin`
METHODS = {
    name: module
    for module, names in {
        "baselines.controls": "no_retrieval single_step gold_passages given_passages placed_gold "
        "guess",
        "drrag.concatenation": "qdc two_stage",
        "drrag.selection": "cis cfs",
        "drrag.probes": "pair_check uncrowded",
        "baselines.adaptive_retrieval": "adaptive_retrieval",
        "baselines.self_rag": "self_rag self_rag_on_gold",
        "baselines.ircot": "ircot",
        "baselines.adaptive_rag": "adaptive_rag",
        "baselines.compressing": "recomp crag long_llmlingua",
        "r2ag.method": "r2ag",
        "r2ag.checks": "attention_check likelihood_check",
        "erm4.pipeline": "erm4",
        "dragin.loop": "dynamic dragin_released",
        "composed": "composed",
        "dragin.timing_check": "timing_check",
        "dragin.draft_checks": "dragin_replay query_check influence_check",
    }.items()
    for name in names.split()
}


# name -> what `builtin` registered, of the modules that are imported
_BUILTIN: dict[str, MethodSpec] = {}


def builtin(
    name: str,
    version: int,
    settings: type[Settings],
    source: str,
    since: Callable[[Any], int] | None = None,
) -> Callable[[Method], Method]:
    """Register a method of this package, which is listed in `METHODS`."""

    def register(run: Method) -> Method:
        _BUILTIN[name] = MethodSpec(name, version, run, settings, source, since)
        return run

    return register


# name -> what `method` registered in this process
_OWN: dict[str, MethodSpec] = {}


def method(
    name: str, *, version: int = 1, settings: type[Settings] = Settings, source: str = "one's own"
) -> Callable[[Method], Method]:
    """Register a method of one's own, from a notebook or a module: `@method("ask_twice")`.

    The function is a generator of calls, as any method is, and is returned as
    it was. Records know it by name, version and a hash of its source and of the
    values that it holds from a function around it, so that an edited function has
    records of its own; raise the version when something that it *calls* changes.
    Running a notebook's cell again replaces what the cell registered; a name that
    another function has is refused.

    Raises ValueError for a name, version or settings that cannot be, and for a
    function that yields nothing or whose source cannot be read.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise ValueError(f"{name!r} cannot name a method; write it like ask_twice")
    if type(version) is not int or version < 1:
        raise ValueError(f"method {name!r}: version {version!r} is not a whole number from 1 on")
    if not (
        isinstance(settings, type)
        and issubclass(settings, Settings)
        # Of its own: inherited from Settings it would leave new fields out of every identity.
        and (own := vars(settings).get("__dataclass_params__")) is not None
        and own.frozen
    ):
        raise ValueError(f"method {name!r}: its settings must be a frozen dataclass over Settings")

    def register(run: Method) -> Method:
        if not inspect.isgeneratorfunction(run):
            raise ValueError(
                f"method {name!r}: the function must yield its calls, as in "
                "`hits = yield Retrieve(question.text, k=settings.k)`"
            )
        held = _OWN.get(name)
        if name in METHODS or (held and _place(held.run) != _place(run)):
            raise ValueError(f"there is a method {name!r} already; give yours another name")
        try:
            text = inspect.getsource(run)
        except OSError as error:
            raise ValueError(
                f"method {name!r}: its source cannot be read; define it in a file or a notebook"
            ) from error
        # One source may make several functions, which differ in what they hold.
        held = [inspect.getclosurevars(run).nonlocals, run.__defaults__, run.__kwdefaults__]
        text += json.dumps(held, sort_keys=True, default=repr) if any(held) else ""
        code = hashlib.sha256(text.encode()).hexdigest()[:12]
        _OWN[name] = MethodSpec(name, version, run, settings, source, code=code)
        return run

    return register


def _place(run: Method) -> tuple[str, str]:
    return run.__module__, run.__qualname__


def is_own(name: str) -> bool:
    """Whether `method` registered it in this process."""
    return name in _OWN


def method_names() -> list[str]:
    """The names that `get` knows."""
    return sorted({*METHODS, *_OWN})


def get(name: str) -> MethodSpec:
    """The method of that name; an unknown name is refused with the nearest one."""
    if name in _OWN:
        return _OWN[name]
    if name not in METHODS:
        raise ValueError(f"there is no method {name!r}{choices(name, method_names())}")
    importlib.import_module(f".{METHODS[name]}", __package__)
    return _BUILTIN[name]
