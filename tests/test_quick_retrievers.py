"""`ask` and `compare` with a retriever of the user's own, or a search service at an address."""

from __future__ import annotations

import json
import lzma

import pytest

from rag_repro import quick
from rag_repro.data.dataset import Corpus
from rag_repro.lm import loopback
from rag_repro.methods.base import METHODS
from rag_repro.retrieval import BM25, RetrievalError, adapt
from rag_repro.retrieval.served import SearchServer
from rag_repro.schema import Generate, Question, Retrieve
from rag_repro.study.papers import StudyError
from rag_repro.study.services import UnknownService, Workshop

from .lm import loopback
from .test_quick import PASSAGES, TOWN, Bench
