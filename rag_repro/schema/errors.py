"""What can go wrong in this room, by name.

A `CallError` concerns one call: readers put it, as an instance, into that
call's place in the list of results, and the engine raises it in the method.
"""

from __future__ import annotations


class ReaderError(ValueError):
    """A reader, its weights or its settings cannot be used."""


class WeightsError(ReaderError):
    """Weights are missing, damaged, or not what they should be."""


class CallError(ReaderError):
    """This one call cannot be answered; its neighbours can."""


class PromptTooLong(CallError):
    """The prompt leaves no room for a new token in the reader's context."""

    def __init__(self, tokens: int, context: int):
        super().__init__(
            f"the prompt has {tokens} tokens and the reader's context holds {context}: "
            "shorten the prompt (fewer or shorter passages) or take another reader"
        )
        self.tokens = tokens
        self.context = context
