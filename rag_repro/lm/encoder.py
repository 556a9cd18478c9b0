"""Sentence vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_repro.lm.errors import ReaderError
from rag_repro.lm.hub import Weights
from rag_repro.lm.load import device_of, quiet


class SentenceEncoder:
    """Texts to unit vectors with a sentence-transformers model.

    A text's tokens beyond `max_tokens` (MiniLM: 256, with its two marks) are not read.
    """

    def __init__(self, weights: Weights, *, device: str = "cpu", batch_size: int = 64):
        if weights.kind != "safetensors":
            raise ReaderError(f"{weights.name}: an encoder needs safetensors, not {weights.kind}")
        device = device_of(device)
        with quiet():
            from sentence_transformers import SentenceTransformer

            self._model = SentenceTransformer(
                str(weights.path),
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        self.weights = weights
        self.name = weights.name
        self.batch_size = batch_size
        self.max_tokens: int = self._model.max_seq_length
        self.width: int = self._model.get_embedding_dimension()
        self.fingerprint = f"encoder:{weights.sha256}:{self.max_tokens}:normalised:{device}"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """float32 (texts, width), each row of length 1."""
        if not len(texts):
            return np.zeros((0, self.width), dtype=np.float32)
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
