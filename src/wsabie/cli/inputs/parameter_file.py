"""`--config FILE`: parameters of an estimator from a TOML file, named as in config.json."""

import tomllib
from pathlib import Path
from typing import Any

from wsabie.core.errors import InputError

_MAX_SIZE = 1 << 14  # bytes; long dotted keys take memory by their square


def read_parameters(path: Path, kind: str = "wsabie") -> dict[str, Any]:
    """Read the parameters of a kind of model; "none" stands for None, since TOML has no null.

    Raises
    ------
    InputError
        The file cannot be read, is no TOML, or names an unknown parameter.
    """
    from wsabie.models.estimator_specs import check_parameter_name

    parameters = read_toml(path)
    for name in parameters:
        check_parameter_name(kind, name, f"{path}: ")
    return {name: None if value == "none" else value for name, value in parameters.items()}


def read_toml(path: Path) -> dict[str, Any]:
    """Read a small TOML file.

    Raises
    ------
    InputError
        The file cannot be read, is large, or is no TOML.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_SIZE + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}; give a TOML file of parameters") from error
    if len(text) > _MAX_SIZE:
        raise InputError(
            f"{path} is larger than {_MAX_SIZE >> 10} KiB; give a TOML file of parameters such as dim = 50"
        )
    try:
        return tomllib.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:  # a number may be too long, brackets may be too deep
        raise InputError(f"{path} is no TOML file: {error}; write lines such as dim = 50") from error
