"""Sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from rag_repro.bars import Bar
from rag_repro.lm.load import device_of
from rag_repro.lm.packaged import PACKAGES
from rag_repro.lm.weights import Weights, loading, refuse_gaps, settings_of
from rag_repro.schema.errors import ReaderError

MANY = 256
"""Texts whose encoding shows its progress: on a slow core a few seconds of work."""


class SentenceEncoder:
    """Texts to unit vectors with a sentence-transformers model.

    A text's tokens beyond `max_tokens` (MiniLM: 256, with its two marks) are not read. The model
    is loaded when it is first needed: to know an index by its encoder's fingerprint needs none.
    """

    def __init__(self, weights: Weights, *, device: str = "cpu", batch_size: int = 64):
        if weights.kind != "safetensors":
            raise ReaderError(f"{weights.name}: an encoder needs safetensors, not {weights.kind}")
        self._device = device_of(device)
        self.weights = weights
        self.name = weights.name
        self.batch_size = batch_size
        self.fingerprint = f"encoder:{weights.sha256}:{self.max_tokens}:normalised:{self._device}"

    @cached_property
    def _model(self) -> Any:
        with loading(self.weights.path):
            from sentence_transformers import SentenceTransformer

            made = SentenceTransformer(
                str(self.weights.path),
                device=self._device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
            if self.name not in PACKAGES:
                made.encode(["a"], show_progress_bar=False)  # some settings fail only here
                # It does not say what the files lacked, so they are loaded a second time.
                _, info = type(made[0].auto_model).from_pretrained(
                    self.weights.path, output_loading_info=True, ignore_mismatched_sizes=True
                )
                refuse_gaps(self.weights.path, info, encoder=True)
        return made

    @cached_property
    def max_tokens(self) -> int:
        """As its own settings say, or, where they are silent, the loaded model."""
        settings = self.weights.path / "sentence_bert_config.json"
        if settings.is_file():
            told = settings_of(settings).get("max_seq_length")
            if told is not None:
                return int(told)
        return self._model.max_seq_length

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return self._model.get_embedding_dimension()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, width), each row of length 1."""
        if not len(texts):
            return np.zeros((0, self.width), dtype=np.float32)
        if len(texts) < MANY:
            return self._encoded(texts)
        with Bar(total=len(texts), desc=f"encoding with {self.name}", unit="text") as bar:
            # Its first part sees each batch; the batches stay as they are, and so do the vectors.
            def count(module: Any, given: Any, made: Any) -> None:
                bar.update(len(given[0]["input_ids"]))  # what a hook returns, goes on in its place

            hook = self._model[0].register_forward_hook(count)
            try:
                return self._encoded(texts)
            finally:
                hook.remove()

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._model.encode(
            list(texts),
            batch_size=self.batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return vectors.astype(np.float32, copy=False)

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.name}, width {self.width})"
