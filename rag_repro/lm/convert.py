"""Other files to safetensors: GGUF, which takes half a minute to load, and ONNX.

What is left is a folder that is loaded as any other, in a second.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

from rag_repro.lm.errors import WeightsError
from rag_repro.lm.load import quiet
from rag_repro.lm.onnx_file import sentence_encoder

log = logging.getLogger(__name__)


def convert(file: Path, digest: str, target: Path) -> None:
    """Write a GGUF or ONNX file's weights, in float32, and tokenizer to `target`.

    Written beside it first and then renamed: a killed conversion leaves
    nothing that looks finished, and of two at once one wins.
    """
    import transformers

    log.info("converting %s to safetensors, once", file.name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise WeightsError(
            f"{target.parent}: cannot write converted weights ({error.strerror}); "
            "name another folder in RAG_REPRO_CACHE"
        ) from error
    try:
        WRITERS[file.suffix](file, work)
        card = {
            "source": file.name,
            "sha256": digest,
            "bytes": (work / "model.safetensors").stat().st_size,
            "transformers": transformers.__version__,
        }
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        # Private until now (mkdtemp); a cache may serve several users.
        work.chmod(0o755)
        for path in work.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        try:
            os.rename(work, target)
        except OSError:
            if not (target / "card.json").is_file():
                raise
            log.info("%s was converted by another process meanwhile", target.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _reader(file: Path, work: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where = {"gguf_file": file.name, "local_files_only": True}
    with quiet():
        tokenizer = AutoTokenizer.from_pretrained(file.parent, **where)
        model = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **where)
    # The tensors are plain floats by now; with these left on, saving is refused.
    model.hf_quantizer = None
    del model.config.quantization_config
    with quiet():
        model.save_pretrained(work)
    tokenizer.save_pretrained(work)


WRITERS = {".gguf": _reader, ".onnx": sentence_encoder}
