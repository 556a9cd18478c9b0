"""Services that note how long their calls take: methods themselves never see a clock."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from rag_repro.cache import CachedEncoder, CachedReader, CachedScorer

# What a service is asked for -> the kind under which its time is noted.
KINDS = {
    **{"generate": "reader", "read": "reader", "search": "retriever", "encode": "encoder"},
    **{"score": "scorer", "recall": "reservoir", "remember": "reservoir"},
}

Clock = Callable[[], float]
Notes = list[tuple[str, float, int]]


class Clocked:
    """A service whose every call is noted as (kind, seconds, items) when it ends.

    within: put before the kind, for a service inside another. A call that fails
    is noted too: its time has passed.
    """

    def __init__(self, service: Any, clock: Clock, notes: Notes, within: str = ""):
        self._service, self._clock, self._notes, self._within = service, clock, notes, within

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._service, name)
        kind = KINDS.get(name)
        return found if kind is None else self._timed(found, self._within + kind)

    def _timed(self, ask: Callable, kind: str) -> Callable:
        def asked(what: Any, *more: Any) -> Any:
            start = self._clock()
            try:
                return ask(what, *more)
            finally:
                items = 1 if isinstance(what, str) else len(what)
                self._notes.append((kind, self._clock() - start, items))

        return asked


def clocked(services: Mapping[str, Any], clock: Clock, notes: Notes) -> dict[str, Any]:
    """The services without their call caches, each call noted; of a search its encoding, too."""
    made = {}
    for name, service in services.items():
        inner = uncached(service)
        encodes = getattr(inner, "encoder", None) is not None  # a store of words has none
        if hasattr(inner, "search") and encodes:
            # A copy over the same index: the workshop's own goes on with its cache.
            inner = copy.copy(inner)
            inner.encoder = Clocked(uncached(inner.encoder), clock, notes, within="retriever.")
        elif encodes:
            # Its encoding is a part of recalling or scoring, and is not told apart.
            inner = copy.copy(inner)
            inner.encoder = uncached(inner.encoder)
        made[name] = Clocked(inner, clock, notes)
    return made


def uncached(service: Any) -> Any:
    """What answers when nothing is remembered."""
    if isinstance(service, CachedReader):
        return service.reader
    if isinstance(service, CachedEncoder):
        return service.encoder
    return service.scorer if isinstance(service, CachedScorer) else service
