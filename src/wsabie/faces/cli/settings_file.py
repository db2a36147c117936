"""`--config FILE`: the estimator's parameters from a TOML file, by the names that a model's config.json gives them."""

import tomllib
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError

_MOST = 1 << 14  # bytes; long dotted keys take memory by their square


def read_parameters(path: Path, kind: str = "wsabie") -> dict[str, Any]:
    """Parameters of a kind of model; TOML has no null, so "none" stands for it.

    Raises
    ------
    InputError
        The file cannot be read, is no TOML, or names a parameter that there is not.
    """
    from wsabie.models.systems import refuse_unknown

    found = read_toml(path)
    for name in found:
        refuse_unknown(kind, name, f"{path}: ")
    return {name: None if value == "none" else value for name, value in found.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """What a small TOML file says.

    Raises
    ------
    InputError
        The file cannot be read, is large, or is no TOML.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MOST + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a TOML file of parameters") from error
    if len(text) > _MOST:
        raise InputError(f"{path} is larger than {_MOST >> 10} KiB; give a TOML file of parameters such as dim = 50")
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a number may be too long, brackets may be too deep
        raise InputError(f"{path} is no TOML file: {error}; write lines such as dim = 50") from error
