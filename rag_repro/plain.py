"""JSON and YAML from files that nobody vouches for: a value, or one named error.

The libraries raise whatever comes up on odd input (RecursionError, KeyError,
OverflowError); each room turns `PlainError` into an error of its own that
names the file and what to do next.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LARGEST = 200_000  # values of a YAML file with its aliases written out; our largest has 5,000


class PlainError(ValueError):
    """What is wrong with a text, in a few words and without the file's name; `line` where known."""

    def __init__(self, words: str, line: int | None = None):
        super().__init__(words)
        self.line = line


def text_of(path: Path) -> str:
    """A whole file of UTF-8; a byte-order mark is left out. Raises PlainError, OSError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PlainError(f"not UTF-8 at byte {error.start}") from error


def from_json(text: str | bytes, whole: bool = False) -> Any:
    """The JSON value. NaN and Infinity, which JSON does not have, are refused.

    whole: also half a character, as "\\ud800", which no file can take up again.
    """
    try:
        text = text.decode() if isinstance(text, bytes) else text
        value = _DECODER.decode(text)
        # Decoded text has none but by an escape, so that this is seldom tried.
        if whole and _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
        return value
    except RecursionError:
        raise PlainError("not JSON (nested too deeply)") from None
    except ValueError as error:  # also of bytes that are no UTF-8, and of endless integers
        words = getattr(error, "msg", None) or _first_line(error)
        raise PlainError(f"not JSON ({words})", getattr(error, "lineno", None)) from error


def from_yaml(text: str) -> Any:
    """The YAML value: plain data, no key twice, not larger than LARGEST, aliases written out."""
    import yaml

    try:
        value = yaml.load(text, _loader())
    except RecursionError:
        raise PlainError("not valid YAML (nested too deeply)") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # Constructors of explicit tags, as `!!bool maybe`, raise what comes up.
        raise PlainError(f"not valid YAML ({_first_line(error)})") from error
    _measure(value)
    return value


@cache
def _loader() -> type:
    """A loader to which a key given twice is an error, where YAML's habit is that the last wins."""
    import yaml

    # The C parser is four times as fast. Nodes are put together in Python all the same: in C deep
    # nesting overflows the stack, which nothing can catch.
    class Loader(yaml.composer.Composer, yaml.CSafeLoader):
        def __init__(self, stream: str):
            yaml.CSafeLoader.__init__(self, stream)
            yaml.composer.Composer.__init__(self)

        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
            own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
            made = super().construct_mapping(node, deep)  # writes out `<<`
            seen = set()
            for key in own:
                name = self.construct_object(key, deep=True)
                if name in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key {name!r} is given twice", problem_mark=key.start_mark
                    )
                seen.add(name)
            return made

    return Loader


def _measure(value: Any) -> None:
    """Refuse what a few lines of aliases can grow to, and what holds itself."""
    left, waiting = LARGEST, [value]
    while waiting:
        left -= 1
        if left < 0:
            raise PlainError(f"more than {LARGEST:,} values with its aliases written out")
        one = waiting.pop()
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple | set):
            waiting += one
        if len(waiting) > left:  # refused before the list of what waits grows large
            left = -1


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _first_line(error: Exception) -> str:
    """The error's words as one line: YAML's tell the place on lines of their own."""
    mark = getattr(error, "problem_mark", None)
    words = getattr(error, "problem", None) or str(error) or type(error).__name__
    place = f", line {mark.line + 1}" if mark is not None else ""
    return shortened(" ".join(str(words).split()) + place)


# Control characters, ends of lines, half characters, and marks that turn the line around.
UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def escaped(text: str) -> str:
    """Text for one line of a terminal: what would act there stands as "\\x1b"."""
    return UNSEEN.sub(lambda one: ascii(one[0])[1:-1], text)


def shortened(value: object, most: int = 160) -> str:
    """`value` as text for an error message, cut where it is long."""
    text = str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


@cache
def hints(cls: type) -> dict[str, Any]:
    """Name of a field -> what its annotation says."""
    return get_type_hints(cls)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is what a field's annotation says."""
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple and not isinstance(value, tuple):
        return False
    if origin is tuple:
        kinds = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return len(kinds) == len(value) and all(map(fits, value, kinds))
    if origin is not None and len(inner) == 2:  # a mapping
        return isinstance(value, Mapping) and all(
            fits(key, inner[0]) and fits(one, inner[1]) for key, one in value.items()
        )
    if origin is not None:  # a sequence, written as a list or a tuple
        return isinstance(value, list | tuple) and all(fits(one, inner[0]) for one in value)
    if hint is tuple:
        return isinstance(value, tuple | list)
    if hint is float:
        return type(value) is float or fits(value, int)
    if hint is int:
        return type(value) is int and abs(value) < 2**63  # what other programs hold as well
    return isinstance(value, hint)
