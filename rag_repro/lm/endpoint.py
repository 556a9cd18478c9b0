"""How a reader at an endpoint is named: `api:MODEL@URL`, of several servers `api:MODEL@URL,URL`."""

from __future__ import annotations

import re
import urllib.parse

from rag_repro.schema.errors import ReaderError

PREFIX = "api:"
KEY_VARIABLE = "RAG_REPRO_API_KEY"
"""The environment variable with the key, where readers are named in conditions."""


def parse(name: str) -> tuple[str, tuple[str, ...]]:
    """Model and addresses in `api:MODEL@URL,URL`. ReaderError: it is not of that form."""
    found = re.fullmatch(PREFIX + r"(?P<model>.+)@(?P<urls>https?://.+)", name)
    if found is None:
        raise ReaderError(
            "a reader at an endpoint is named api:MODEL@URL, as "
            "api:llama3.2:1b@http://127.0.0.1:11434/v1; of several servers with the same model "
            "the addresses stand side by side, with a comma between them"
        )
    return found["model"], addresses(found["urls"])


def label(name: str | None) -> str | None:
    """A reader's name as records hold it: at an endpoint the model alone.

    Which server answered, and how many there were, changes no answer.
    """
    if name is None or not name.startswith(PREFIX):
        return name
    return PREFIX + parse(name)[0]


def addresses(urls: str) -> tuple[str, ...]:
    """One address, or several with commas between. ReaderError: one cannot be used, or is twice."""
    found = tuple(checked(url) for url in urls.split(","))
    for url in found:
        if found.count(url) > 1:
            raise ReaderError(f"{url} is named twice; name each server once")
    return found


def checked(url: str) -> str:
    """An endpoint's address without a slash at its end. ReaderError: it cannot be used."""
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ReaderError(
            "an endpoint's address must be one, beginning with http:// or https:// "
            "(a comma within an address is written %2C)"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ReaderError(
            "the endpoint's address must hold no credentials and no query: "
            "put the key into an environment variable and name that"
        )
    return parts._replace(netloc=parts.netloc.lower()).geturl().rstrip("/")
