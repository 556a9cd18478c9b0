"""Data: the front door. `load("hotpotqa")`, `load("world-B@20000")`, `load("folder:my_texts")`,
`load("hotpotqa:/path/hotpot_dev_distractor_v1.json")`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rag_repro.arguments import path as as_path
from rag_repro.plain import shortened
from rag_repro.words import choices, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from rag_repro.data.synthworld import Dials
    from rag_repro.schema.dataset import Dataset

ENVIRONMENT = "RAG_REPRO_DATA"
WORLD, FOLDER = "world", "folder:"

_WORLD = re.compile(
    r"world-([A-Z])"
    r"(?:-(\d+|gold|ambiguous|meant|several|asked-halves|again-halves|asked|again))?"
    r"(?:@(\d{1,12}))?(?:~([\w.=,]+))?"
)
SEVERAL = ("comparison", "yes_no", "bridge_free")
"""Kinds of questions that name two things and ask for a fact of each."""
_APART: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("ambiguous", "meant"), ("ambiguous",)),
    "several": SEVERAL,
    **dict.fromkeys(("asked", "again", "asked-halves", "again-halves"), ("paraphrase",)),
}
"""Questions of a world apart -> the kinds that they are of."""
N_SEVERAL = 400


def load(
    name: str,
    *,
    data_dir: Path | str | None = None,
    split: str | None = None,
) -> Dataset:
    """A data set by name: a world of the testbed, a folder of one's own, or a public one.

    `world-B` has the default size, `world-B@20000` so many passages, and
    `world-B~hooks=0,ties=0` those dials turned away from the preset; `world-B-10` gives
    each question ten candidates, `world-B-gold` its gold passages alone (`candidates`);
    `world-B-ambiguous`, `world-B-meant`, `world-B-asked` and `world-B-again` are questions apart
    (`intents`, `recurring`), and so are `world-B-several` (questions about two things that they
    name); `world-B-asked-halves` and `world-B-again-halves` have a corpus of their own, in which
    two passages bear each title. Public sets are read from `data_dir`, by default the
    folder that the environment variable RAG_REPRO_DATA names. `split` ("train", "tune" or "test")
    keeps the questions that the frozen split file lists, in its order (worlds A and Z train and
    tune, the others test); "all" and None keep every question. The corpus stays whole. Split
    "confirm" is read from the
    subfolder `confirm` of `data_dir`, whose files have the same names, with a corpus of its own:
    no other split has a question of it. `folder:PATH` has the form that
    `own` tells of, and `FORMAT:PATH`, as `beir:PATH`, one of those that `external` tells of: a
    whole file is the split "test". A relative path is one from the current folder.

    Raises ValueError (UnknownName, DataError) with what to do next.
    """
    split = None if split == "all" else split
    if own := _own(name):
        module, where = own
        return module.load(where, split)
    check_name(name)
    if name.startswith(WORLD):
        return _world(name, split)

    from rag_repro.data import public, splits

    folder = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or None
    if split == splits.CONFIRM:
        return splits.to_confirm(public.load(name, folder and as_path(folder) / splits.CONFIRM))
    made = public.load(name, folder)
    return made if split is None else splits.only(made, split)


def label(name: str) -> str:
    """The name that records and pages carry: a folder's or file's without its path."""
    if own := _own(name):
        module, where = own
        return module.label(where)
    return name


def is_made_here(name: str) -> bool:
    """Whether the data set needs no file of public data: a world, a folder or file of one's own."""
    return name.startswith(WORLD) or has_path(name)


def may_have_candidates(name: str) -> bool:
    """Whether questions may come with passages of their own: public ones, and a world's where they
    are asked for, as in "world-B-10"."""
    if is_made_here(name):
        world = _WORLD.fullmatch(name)
        return bool(world and world[2] and world[2] not in _APART)
    return True


def has_path(name: str) -> bool:
    """Whether the name says where the data lies: a folder or file of one's own."""
    return _own(name) is not None


def absolute(name: str) -> str:
    """The name with whole paths, so that it means the same in every folder."""
    if name.startswith(FOLDER):
        return FOLDER + str(as_path(name.removeprefix(FOLDER)).absolute())
    own = _own(name)
    return str(own[1]) if own else name


def _own(name: str) -> tuple[Any, Any] | None:
    """What reads a folder or file of one's own, and where that lies; None: the name is neither."""
    if name.startswith(FOLDER):
        from rag_repro.data import own

        return own, name.removeprefix(FOLDER)
    if ":" not in name:
        return None
    from rag_repro.data import external  # whose readers take time to import

    address = external.parse(name)
    return address and (external, address)


def names() -> list[str]:
    """The worlds of the testbed, then the public data sets."""
    from rag_repro.data.public import registry
    from rag_repro.data.synthworld.dials import PRESETS

    return [*(f"{WORLD}-{letter}" for letter in sorted(PRESETS)), *registry()]


def check_name(name: str) -> None:
    """UnknownName, with the nearest one, for what is no data set's name; nothing is loaded."""
    from rag_repro.data.public import UnknownName

    if name in names() or name.startswith(FOLDER):
        return
    if own := _own(name):
        own[1].files  # noqa: B018
        return
    if ":" in name:
        from rag_repro.data.external import OPTIONS

        form, known = name.partition(":")[0], [FOLDER[:-1], *OPTIONS]
        raise UnknownName(
            f"no format {shortened(repr(form), 60)}{nearest(form, known)}; write FORMAT:PATH with "
            f"one of: {', '.join(known)}"
        )
    if os.path.exists(name):  # False, too, for what no path can be
        hint = f"for the folder of that name write 'folder:{name}'"
        if not os.path.isdir(name):
            hint = f"for the file of that name write its format before it, as 'hotpotqa:{name}'"
        raise UnknownName(f"no data set {name!r}; {hint}")
    found = _WORLD.fullmatch(name)
    if found is None or f"{WORLD}-{found[1]}" not in names():
        raise UnknownName(
            f"no data set {shortened(repr(name), 60)}"
            f"{choices(name, names(), 'rag-repro data list')}; "
            "worlds also as world-B@20000, world-B~ties=0.5, world-B-10 (candidates), "
            "world-B-ambiguous, world-B-meant, world-B-several, world-B-asked, world-B-again, "
            "world-B-asked-halves, world-B-again-halves"
        )
    if found[3]:
        from rag_repro.data.synthworld.world import check_size

        check_size(found[1], int(found[3]))
    _dials(name, found[4])
    if found[2] and found[2] not in _APART:
        from rag_repro.data import candidates

        candidates.check(name, found[2])


def check_at_hand(name: str, data_dir: Path | str | None = None) -> None:
    """MissingFile for a public data set of which no file is here; nothing is read."""
    if not is_made_here(name):
        from rag_repro.data.public import loading, registry

        folder = data_dir if data_dir is not None else os.environ.get(ENVIRONMENT) or None
        loading.find(registry()[name], folder)


def _world(name: str, split: str | None) -> Dataset:
    found = _WORLD.fullmatch(name)
    from rag_repro.data import splits

    # World A's splits are drawn from one list, which records rest on; Z's are made of blocks.
    learned = found[1] != "A" and split in splits.of_world(found[1]) and split != "test"
    dials = _dials(name, found[4])
    made = _built(found[1], found[2], found[3], dials, split if learned else None)
    return made if split is None else splits.only_of_world(made, found[1], split)


# Candidates take seconds of search, and a page asks for the same few worlds again and again.
@lru_cache(maxsize=8)
def _built(
    letter: str, wanted: str | None, size: str | None, dials: Dials, split: str | None
) -> Dataset:
    from rag_repro.data import synthworld

    sized = {"n_passages": int(size)} if size else {}
    if wanted in _APART:
        return _apart(letter, wanted, sized, dials, split)
    made = synthworld.build(letter, **sized, dials=dials, split=split)
    if wanted is None:
        return made
    from rag_repro.data import candidates

    return candidates.given(made, wanted)


def _apart(
    letter: str, wanted: str, sized: dict[str, int], dials: Dials, split: str | None
) -> Dataset:
    from rag_repro.data import intents, recurring, synthworld

    # As many as there are of the ambiguous; of paraphrases, four a group.
    kinds, part = _APART[wanted], wanted.removesuffix("-halves")
    n = {"ambiguous": 1_000_000, "comparison": N_SEVERAL}.get(kinds[0], 4 * recurring.GROUPS)
    made = synthworld.build(letter, **sized, dials=dials, n_questions=n, kinds=kinds, split=split)
    world = synthworld.world(letter, **sized, dials=dials)
    if wanted == "several":
        head, at, size = made.name.partition("@")
        return replace(made, name=f"{head}-several{at}{size}")
    if kinds == ("ambiguous",):
        return intents.given(made, world, meant=wanted == "meant")
    if part != wanted:
        return recurring.of_halves(made, world, part)
    return recurring.of_world(made, wanted)


def _dials(name: str, text: str | None) -> Dials:
    """The preset, or the preset with some dials turned: "hooks=0,ties=0.5"."""
    from rag_repro.data.synthworld.dials import DEFAULT, PRESETS

    turned = {}
    for part in (text or "").split(",") if text else ():
        dial, _, value = part.partition("=")
        if dial in turned:
            raise ValueError(f"{name}: the dial {dial!r} is turned twice")
        try:
            turned[dial] = float(value)
        except ValueError:
            raise ValueError(f"{name}: {part!r} is no dial; write as hooks=0.5") from None
        if dial not in (known := DEFAULT.__dataclass_fields__):
            raise ValueError(f"{name}: there is no dial {dial!r}{nearest(dial, known)}")
    found = _WORLD.fullmatch(name)
    return replace(PRESETS[found[1]].dials if found else DEFAULT, **turned)
