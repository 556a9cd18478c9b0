"""GGUF to safetensors, so that loading takes a second and not half a minute."""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

from rag_repro.lm.errors import WeightsError
from rag_repro.lm.load import quiet

log = logging.getLogger(__name__)


def convert(file: Path, digest: str, target: Path) -> None:
    """Write a GGUF file's weights, dequantised to float32, and tokenizer to `target`.

    Written beside it first and then renamed: a killed conversion leaves
    nothing that looks finished, and of two at once one wins.
    """
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

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
        card = {
            "source": file.name,
            "sha256": digest,
            "bytes": (work / "model.safetensors").stat().st_size,
            "transformers": transformers.__version__,
        }
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
        # Private until now (mkdtemp); a cache may serve several users.
        work.chmod(0o755)
        for file in work.iterdir():
            file.chmod(0o644)
        try:
            os.rename(work, target)
        except OSError:
            if not (target / "card.json").is_file():
                raise
            log.info("%s was converted by another process meanwhile", target.name)
    finally:
        shutil.rmtree(work, ignore_errors=True)
