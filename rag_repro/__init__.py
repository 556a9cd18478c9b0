"""rag_repro: four retrieval-augmented-generation papers, re-tested in the open."""

__version__ = "0.1.0"
