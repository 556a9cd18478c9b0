"""A Milvus, in a folder of this machine or at an address, and its collections with their cards.

Cards lie in a collection of their own beside those that they describe, so that whoever
reaches the collection reaches its card: the embedded Milvus keeps no description. pymilvus is
imported when a server is opened, not here.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rag_repro.digest import installed
from rag_repro.plain import shortened
from rag_repro.post import Key, is_loopback
from rag_repro.retrieval.interface import RetrievalError, check_address

KEY_VARIABLE = "RAG_REPRO_MILVUS_TOKEN"
"""Environment variable with the token of a server that asks for one ("user:password")."""
INSTALL = "pip install 'rag-repro[milvus]'"
HOW = ("a Milvus server", "http://127.0.0.1:19530", KEY_VARIABLE)
"""`interface.check_address` of it."""
ENDING = ".db"
"""Of an embedded Milvus's folder: pymilvus knows it by that."""
CARDS = "rag_repro_cards"
LARGEST = 65_535
"""Bytes of a text field."""
MOST = 16_384
"""Hits of a search."""
CONSTANT = 60
"""Of the fusion: the sum of 1 / (CONSTANT + rank)."""
LONGEST_ID = 512
"""Bytes of an id."""
_UNREACHABLE = 2  # pymilvus's code of a server that does not answer
SHORT, LONG = 60.0, 3600.0  # seconds for a search, and for what works on a whole collection
_AT_ONCE = 10  # searches of one request that SHORT is enough for


class MilvusError(RetrievalError):
    """Milvus is not installed, does not answer, or refuses what it is asked."""


class Server:
    """The collections of one Milvus.

    where: an address, as "http://127.0.0.1:19530", or a path that ends in .db: the embedded
    Milvus makes a folder of it, which one process at a time can open.

    Raises MilvusError where pymilvus is missing or nobody answers.
    """

    def __init__(self, where: str | Path):
        self.embedded = "://" not in str(where)
        self.where = str(where) if self.embedded else check_address(str(where), *HOW)
        if self.embedded and Path(self.where).suffix != ENDING:
            raise MilvusError(
                f"the folder of an embedded Milvus ends in {ENDING}, and an address begins with http://"
            )
        needed = ["pymilvus", "milvus_lite"] if self.embedded else ["pymilvus"]
        missing = [name.replace("_", "-") for name in needed if util.find_spec(name) is None]
        if missing:
            raise MilvusError(f"{' and '.join(missing)} not installed: {INSTALL}")
        import pymilvus

        # They log every error that they raise, with its stack.
        for chatty in (*needed, *(["grpc"] if self.embedded else [])):
            logging.getLogger(chatty).setLevel(logging.CRITICAL)
        if self.embedded:
            Path(self.where).parent.mkdir(parents=True, exist_ok=True)
            # The embedded one closes connections on which it is asked whether it lives.
            given = {"grpc_options": {"grpc.keepalive_time_ms": 600_000}}
        else:
            given = {"token": os.environ.get(KEY_VARIABLE, ""), "grpc_options": {}}
        if self.embedded or is_loopback(urlsplit(self.where).hostname or ""):
            given["grpc_options"]["grpc.enable_http_proxy"] = 0
        self._milvus = pymilvus
        with self._told():
            # pymilvus has one connection an address, for the process: there is none to close.
            self._client = pymilvus.MilvusClient(self.where, timeout=SHORT, **given)
            self.version: str = self._client.get_server_version(timeout=SHORT)

    def __repr__(self) -> str:
        return f"Server({self.where})"

    # ----------------------------------------------------------- collections

    def has(self, name: str) -> bool:
        return self._do("has_collection", name)

    def create(
        self,
        name: str,
        *,
        words: Mapping[str, Any] | None = None,
        width: int | None = None,
    ) -> None:
        """An empty collection of passages, by id, with title and text.

        words: k1, b and stop_words of a BM25 field, "searched", which Milvus analyses
        itself. width: of the vectors, if there are any.
        """
        m = self._milvus
        schema = m.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", m.DataType.VARCHAR, max_length=LONGEST_ID, is_primary=True)
        for field in ("title", "text"):
            schema.add_field(field, m.DataType.VARCHAR, max_length=LARGEST)
        indexes = m.MilvusClient.prepare_index_params()
        if words is not None:
            stop = {"type": "stop", "stop_words": list(words["stop_words"])}
            analyzer = {"tokenizer": "standard", "filter": ["lowercase", stop]}
            schema.add_field(
                "searched",
                m.DataType.VARCHAR,
                max_length=LARGEST,
                enable_analyzer=True,
                analyzer_params=analyzer,
            )
            schema.add_field("words", m.DataType.SPARSE_FLOAT_VECTOR)
            # Told twice: the embedded Milvus looks for them one level deeper.
            weights = {"bm25_k1": words["k1"], "bm25_b": words["b"]}
            schema.add_function(
                m.Function("bm25", m.FunctionType.BM25, ["searched"], ["words"])  # from, to
            )
            indexes.add_index(
                "words",
                index_type="SPARSE_INVERTED_INDEX",
                metric_type="BM25",
                params={**weights, "params": weights},
            )
        if width is not None:
            schema.add_field("vector", m.DataType.FLOAT_VECTOR, dim=width)
            indexes.add_index("vector", index_type="FLAT", metric_type="IP")
        self._create(name, schema, indexes)

    def drop(self, name: str) -> None:
        """The collection and its card are gone, if there were any.

        The card first: one that stayed behind would tell of passages that are gone.
        """
        if self.has(CARDS):
            self._do("delete", CARDS, ids=[name])
        if self.has(name):
            self._do("drop_collection", name)

    def open(self, name: str) -> None:
        self._do("load_collection", name, timeout=LONG)

    def settle(self, name: str) -> None:
        """Have all that was put in on the disk and in the index."""
        self._do("flush", name, timeout=LONG)
        self.open(name)

    def count(self, name: str) -> int:
        return int(self._do("query", name, output_fields=["count(*)"], timeout=LONG)[0]["count(*)"])

    def put(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self._do("insert", name, list(rows), timeout=LONG)

    def stored_fields(
        self, name: str, ids: Sequence[str], fields: Sequence[str] = ()
    ) -> dict[str, dict]:
        """Those of the passages that are there, by id, with these fields."""
        rows = self._do("query", name, filter=id_filter(ids), output_fields=["id", *fields])
        return {row["id"]: dict(row) for row in rows}

    # --------------------------------------------------------------- searches

    def search(
        self,
        name: str,
        asked: Mapping[str, Sequence[Any]],
        k: int,
        ids: Sequence[str] | None,
        depth: int,
    ) -> list[list[tuple[str, float]]]:
        """For each query its best: id and score. Fewer than k come back where fewer match.

        asked: field ("words": texts, "vector": numbers) -> queries; of two fields the `depth` best
        of each are fused by Milvus's own ranker. ids: which passages may be found; None: all.
        """
        limit = None if ids is None else id_filter(ids)
        patience = _patience(*asked.values())
        if len(asked) == 2:
            requests = [
                self._milvus.AnnSearchRequest(list(data), field, {}, depth, expr=limit)
                for field, data in asked.items()
            ]
            ranker = self._milvus.RRFRanker(CONSTANT)
            found = self._do("hybrid_search", name, requests, ranker, limit=k, timeout=patience)
        else:
            [(field, data)] = asked.items()
            how = {"anns_field": field, "limit": k, "filter": limit or "", "timeout": patience}
            found = self._do("search", name, data=list(data), **how)
        # Milvus Lite tells BM25's scores below zero, Milvus above; none of ours is below.
        told = abs if [*asked] == ["words"] else float
        return [[(hit["id"], told(hit["distance"])) for hit in hits] for hits in found]

    # ------------------------------------------------------------------ cards

    def card(self, name: str) -> dict[str, Any] | None:
        """The card of a collection; None where there is none."""
        if not self.has(CARDS):
            return None
        self._do("load_collection", CARDS)
        rows = self._do("query", CARDS, filter=id_filter([name]), output_fields=["card"])
        return json.loads(rows[0]["card"]) if rows else None

    def write_card(self, name: str, card: Mapping[str, Any]) -> None:
        if not self.has(CARDS):
            self._create(CARDS, *self._form_of_cards())
        row = {"id": name, "card": json.dumps(card, ensure_ascii=False), "none": [0.0, 0.0]}
        self._do("upsert", CARDS, [row])
        self._do("flush", CARDS)

    def _form_of_cards(self) -> tuple[Any, Any]:
        m = self._milvus
        schema = m.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", m.DataType.VARCHAR, max_length=LONGEST_ID, is_primary=True)
        schema.add_field("card", m.DataType.VARCHAR, max_length=LARGEST)
        schema.add_field("none", m.DataType.FLOAT_VECTOR, dim=2)  # Milvus asks for a vector
        indexes = m.MilvusClient.prepare_index_params()
        indexes.add_index("none", index_type="FLAT", metric_type="L2")
        return schema, indexes

    def _create(self, name: str, schema: Any, indexes: Any) -> None:
        # Strong: what was put in is found at once.
        how = {"index_params": indexes, "consistency_level": "Strong"}
        self._do("create_collection", name, schema=schema, **how)

    def _do(self, method: str, *given: Any, timeout: float | None = None, **how: Any) -> Any:
        """The client's method, within `SHORT` unless told otherwise."""
        with self._told():
            return getattr(self._client, method)(*given, timeout=timeout or SHORT, **how)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What goes wrong in pymilvus, in our words."""
        import grpc

        try:
            yield
        except (self._milvus.MilvusException, grpc.RpcError) as error:
            raise MilvusError(self._words(error)) from error

    def _words(self, error: Exception) -> str:
        said = Key(KEY_VARIABLE).hidden(str(getattr(error, "message", error)))
        what = shortened(" ".join(said.split()), 300)
        if self.embedded and not hasattr(self, "version"):
            return (
                f"the embedded Milvus in {self.where} cannot be opened ({what}); another process "
                "may have it open: wait for its end, or serve the folder with `milvus-lite "
                f"server --data-dir {self.where}` and name that address. A folder that is damaged "
                "or of an earlier milvus-lite must be deleted and built again"
            )
        if getattr(error, "code", None) == _UNREACHABLE or not hasattr(self, "version"):
            return (
                f"no Milvus answers at {self.where} ({what}); start it, or name another address"
                f" (a server that asks for a token takes it from {KEY_VARIABLE})"
            )
        mend = "; if its folder is damaged, delete it: it is built again when it is needed"
        return f"Milvus at {self.where} refused: {what}" + (mend if self.embedded else "")


def id_filter(ids: Sequence[str]) -> str:
    """Milvus's filter for these ids."""
    quoted = (i.replace("\\", "\\\\").replace('"', '\\"') for i in ids)
    return "id in [" + ", ".join(f'"{i}"' for i in quoted) + "]"


def _patience(*asked: Sequence[Any]) -> float:
    """Seconds for a request of so many searches, each of which takes its time."""
    return SHORT * max(1.0, sum(map(len, asked)) / _AT_ONCE)


def versions() -> dict[str, str]:
    """Of the client, and of the embedded Milvus where it is installed."""
    return installed(("pymilvus", "milvus-lite"))
