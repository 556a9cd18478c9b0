"""How a reader at an endpoint is named: `api:MODEL@URL`."""

from __future__ import annotations

import re
import urllib.parse

from rag_repro.lm.errors import ReaderError

PREFIX = "api:"
KEY_VARIABLE = "RAG_REPRO_API_KEY"
"""The environment variable with the key, where readers are named in conditions."""


def parse(name: str) -> tuple[str, str]:
    """Model and address in `api:MODEL@URL`. ReaderError: it is not of that form."""
    found = re.fullmatch(PREFIX + r"(?P<model>.+)@(?P<url>https?://.+)", name)
    if found is None:
        raise ReaderError(
            "a reader at an endpoint is named api:MODEL@URL, as "
            "api:llama3.2:1b@http://127.0.0.1:11434/v1"
        )
    return found["model"], checked(found["url"])


def checked(url: str) -> str:
    """An endpoint's address without a slash at its end. ReaderError: it cannot be used."""
    try:
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, half an IPv6 address
        known = False
    if not known or not url.isascii() or not url.isprintable() or " " in url:
        raise ReaderError("the endpoint's address must be one, beginning with http:// or https://")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ReaderError(
            "the endpoint's address must hold no credentials and no query: "
            "put the key into an environment variable and name that"
        )
    return url.rstrip("/")
