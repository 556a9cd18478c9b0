"""argparse, with the nearest right name for what is misspelt; and what options can be."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from rag_repro.words import nearest


class Parser(argparse.ArgumentParser):
    """As its base; commands added to it are of this class, too."""

    def option(self, name: str, help: str, *names: str, **settings: Any) -> None:
        self.add_argument(name, *names, help=help, **settings)

    def flag(self, name: str, help: str, **settings: Any) -> None:
        self.option(name, help, action="store_true", **settings)

    def repeated(self, name: str, help: str, *names: str, **settings: Any) -> None:
        self.option(name, f"{help} (repeatable)", *names, action="append", **settings)

    def error(self, message: str) -> NoReturn:
        super().error(message + self._meant(message))

    def _meant(self, message: str) -> str:
        choice = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if choice:
            return nearest(choice[1], re.findall(r"[\w./-]+", choice[2]))
        unknown = re.search(r"unrecognized arguments:.*?(--?[\w-]+)", message)
        if not unknown:
            return ""
        # The parser above all commands is who tells: it knows the options of every one.
        known = [*dict.fromkeys(self._options())]
        return ", which other commands have" if unknown[1] in known else nearest(unknown[1], known)

    def _options(self) -> Iterator[str]:
        """Of this command and those below it."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for command in action.choices.values():
                    yield from command._options()


class PathError(argparse.ArgumentTypeError, ValueError):
    """A text that names no path; the parser shows the message as it is."""


def path(text: str | Path) -> Path:
    """A path from the command line, the environment or a name: ~ is the home folder.

    Raises PathError for no text, and for the home of somebody who has none here.
    """
    if not str(text):
        raise PathError("no path is given; write . for this folder")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise PathError(f"{str(text)!r}: no such home folder; write the path in full") from None


def _whole(what: str, least: int, most: int) -> Callable[[str], int]:
    """Reads a whole number from `least` to `most`; the error says `what` it should be."""

    def read(text: str) -> int:
        if not (text.isdecimal() and len(text) < 11 and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is {what}")
        return int(text)

    return read


positive = _whole("not a positive whole number below a billion", 1, 10**9 - 1)
seed = _whole("no seed; give a whole number, as 0", 0, 2**32 - 1)
port = _whole("no port; give a number from 0 to 65535", 0, 65535)


def shard(text: str) -> tuple[int, int]:
    i, _, of = text.partition("/")
    whole = i.isdecimal() and of.isdecimal() and len(i) < 10 and len(of) < 10
    if not (whole and 1 <= int(i) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is no shard; write I/N, as 2/8")
    return int(i), int(of)
