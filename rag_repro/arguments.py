"""argparse, with the nearest right name for what is misspelt."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import NoReturn

from .words import nearest


class Parser(argparse.ArgumentParser):
    """As its base; commands added to it are of this class, too."""

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
