"""A training run's state on disk: what makes a cut run end where an uncut one does."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rag_repro.digest import replacing

from .recipes import RecipeError

log = logging.getLogger(__name__)


class State:
    """Where a cut run goes on: weights, AdamW's moments, the next step, the curve.

    And the weights that were best so far, where some were kept.
    """

    def __init__(self, folder: Path, key: str):
        self.folder, self.key = folder, key
        self._best: dict[str, Any] = {}

    def keep(self, model: Any) -> None:
        """Remember the trained weights as they are now."""
        self._best = {n: p.detach().clone() for n, p in _trained(model)}

    def put_back(self, model: Any) -> None:
        """Give the model the weights that were kept last, if any."""
        import torch

        with torch.no_grad():
            for name, parameter in _trained(model):
                if name in self._best:
                    parameter.copy_(self._best[name])

    def save(self, model: Any, adam: Any, step: int, curve: Sequence[dict]) -> None:
        """Written beside, then put in place, so that a cut leaves the state before it."""
        from safetensors.torch import save_file

        names = {id(p): n for n, p in _trained(model)}
        tensors = {f"{n}|best": tensor.contiguous() for n, tensor in self._best.items()}
        for parameter, held in adam.state.items():
            name = names[id(parameter)]
            tensors |= {f"{name}|{part}": tensor.contiguous() for part, tensor in held.items()}
        tensors |= {f"{n}|weight": p.detach().contiguous() for n, p in _trained(model)}
        self.folder.mkdir(exist_ok=True)
        facts = {"key": self.key, "step": str(step), "curve": json.dumps(list(curve))}
        with replacing(self.folder / "state.safetensors") as part:
            save_file(tensors, part, metadata=facts)

    def load(self, model: Any, adam: Any) -> tuple[int, list[dict]]:
        """The next step and the curve so far; (0, []) where nothing was saved."""
        import torch
        from safetensors import safe_open

        path = self.folder / "state.safetensors"
        if not path.is_file():
            return 0, []
        with safe_open(path, "pt") as file:
            facts = file.metadata()
            if facts["key"] != self.key:
                raise RecipeError(
                    f"{path}: the state of another recipe, seed or base, {facts['step']} steps of "
                    f"it; delete {self.folder} to lose them and begin anew"
                )
            saved = set(file.keys())
            with torch.no_grad():
                for name, parameter in _trained(model):
                    parameter.copy_(file.get_tensor(f"{name}|weight"))
                    # Moments lie beside their weights, AdamW's count of steps stays here.
                    held = {
                        part: file.get_tensor(f"{name}|{part}").to(parameter.device)
                        for part in ("exp_avg", "exp_avg_sq")
                    }
                    adam.state[parameter] = {"step": file.get_tensor(f"{name}|step"), **held}
                    if f"{name}|best" in saved:
                        self._best[name] = file.get_tensor(f"{name}|best").to(parameter.device)
        log.info("%s: going on after step %s", self.folder.parent.name, facts["step"])
        return int(facts["step"]), json.loads(facts["curve"])

    def forget(self) -> None:
        """The run is complete."""
        for path in self.folder.glob("*"):
            path.unlink()
        if self.folder.is_dir():
            self.folder.rmdir()


def _trained(model: Any) -> list[tuple[str, Any]]:
    return [(n, p) for n, p in model.named_parameters() if p.requires_grad]
