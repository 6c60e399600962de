"""A corpus, checked before any training."""
from __future__ import annotations

import json
import os
from typing import Any

from . import _core
from ._settings import path_text, texts


class PrepareReport(dict):
    """What was found, with the keys of `myxtts prepare --json`; printed as the command prints it, a page in notebooks."""

    def __init__(self, found: dict[str, Any], text: str, html: str) -> None:
        super().__init__(found)
        self._text = text
        self.html = html

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return framed(self.html)


def prepare(
    path: str | os.PathLike[str],
    *,
    deep: bool = False,
    preset: str | None = None,
    config: str | os.PathLike[str] | None = None,
    **settings: Any,
) -> PrepareReport:
    """Indexes and checks a corpus, as `myxtts prepare` does. The Loader then opens it at once.

    deep: decode every clip, not only its header.
    preset: the log-mel convention that lengths are measured in.
    config, settings: as for the Loader.
    """
    keywords = texts({"mel_preset": preset, **settings})
    found, text, html = _core.prepare(path_text(path), path_text(config), keywords, deep)
    return PrepareReport(json.loads(found), text, html)


def framed(page: str) -> str:
    """A whole page inside a notebook's, with its own style."""
    import html

    return f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: 40em; border: 0"></iframe>'
