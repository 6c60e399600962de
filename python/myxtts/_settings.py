"""Keywords as the settings of the command line and of configuration files."""
import os
from typing import Any


def path_text(path: "str | os.PathLike[str] | None") -> str:
    return "" if path is None else os.fspath(path)


def texts(settings: "dict[str, Any]") -> "dict[str, str]":
    """Values as a flag would have them; what is None is left to the configuration."""
    return {key: _text(value) for key, value in settings.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
