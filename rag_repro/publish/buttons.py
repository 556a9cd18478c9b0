"""Sphinx extension: launch and source buttons, where the repository's address is known.

`repository.url` in `_config.yml` is the one place. Without it no page has such a
button, since it would lead nowhere.
"""

from __future__ import annotations

from typing import Any

SOURCE = ("use_repository_button", "use_issues_button")
LAUNCH = ("binderhub_url", "colab_url", "jupyterhub_url", "deepnote_url", "jupyterlite_url")


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("config-inited", switch)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def switch(app: Any, config: Any) -> None:
    """All buttons on, or all off."""
    options = config.html_theme_options
    address = options.get("repository_url") or ""
    known = bool(address)
    for key in SOURCE:
        options[key] = known
    if not known:
        # An empty address would be taken for one, and its parts be looked for.
        options.pop("repository_url", None)
    # Colab knows GitHub alone, and the theme warns of every page elsewhere.
    off = LAUNCH if not known else () if "github.com" in address else ("colab_url",)
    launch = options.get("launch_buttons", {})
    options["launch_buttons"] = {k: v for k, v in launch.items() if k not in off}
