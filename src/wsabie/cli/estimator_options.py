"""Parameters of estimators on the command line: flags, `--set NAME=VALUE`, TOML by `--config FILE`.

The fields of `EstimatorOptions` are parameters of `wsabie.Wsabie`; a test compares them with its signature.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from wsabie.cli.framework import Options, Settings, option
from wsabie.cli.shared_options import number_option
from wsabie.core.errors import InputError
from wsabie.models.estimator_specs import check_parameter_name


def parse_buffer_size(text: str) -> int | str:
    """Parse the number of rows of a buffer, or "auto"."""
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and int(text)):
        raise typer.BadParameter(f"{text} is not a number of rows; give one above 0, or auto.")
    return int(text)


_REPLAY_HELP = "Rows that the model keeps, so that wsabie update forgets nothing; auto: as many as 4 MB hold."
Replay = Annotated[str | None, typer.Option(parser=parse_buffer_size, metavar="N", help=_REPLAY_HELP)]


class ShapeOptions(Options, panel="Parameters of the model"):
    """Parameters of the estimator that users change most; a space has them too."""

    dim: int | None = option("Dimensions of the space (default: 100).", min=1, max=4096)
    loss: Literal["warp", "auc", "owpc", "k-os"] | None = option("warp, auc, owpc or k-os (default: warp).")
    similarity: Literal["dot", "euclidean", "cosine"] | None = option("dot, euclidean or cosine (default: dot).")
    epochs: int | None = option("Passes over the pairs (default: auto, by size).", min=1)
    learning_rate: float | None = number_option("Learning rate of the first epoch (default: auto, by size).")
    max_norm: float | None = number_option("Limit on the norm of every row (default: auto, 1.5).")


class EstimatorOptions(Options, panel="Parameters of the model"):
    """Parameters of the estimator that only models of labels have, and the ways to give all others."""

    replay: Replay = None
    hogwild: bool = option("Lock-free threads instead of reproducible ones.")
    set_: list[str] | None = option("Another parameter, as margin=0.5; repeatable.", flag="--set", metavar="NAME=VALUE")
    config: Path | None = option("TOML file with parameters (dim = 50); options here go before it.")

    def settings(self, kind: str) -> Settings:
        """Return the stated parameters of a kind of model; --set goes before --config."""
        assignments = _check_parameters(parse_assignments(self.set_ or ()), kind, "--set: ")
        parameters = ({} if self.config is None else read_parameters(self.config, kind)) | assignments
        parameters |= {} if self.replay is None else {"replay": self.replay}
        return parameters | ({"deterministic": False} if self.hogwild else {})


class EnsembleOptions(Options, panel="Parameters of the model"):
    """Options of ensembles."""

    ensemble: int | None = option("Train N models and add up their scores (default: one model).", min=1, metavar="N")
    ensemble_by: Literal["seed", "rows", "columns"] | None = option(
        "How the N models differ: seed, rows (bags) or columns (kinds of features) (default: seed)."
    )


def parse_assignments(words: Sequence[str]) -> Settings:
    """Parse NAME=VALUE with values as in TOML; other values are texts.

    Raises
    ------
    InputError
        A word is not NAME=VALUE.

    Examples
    --------
    >>> parse_assignments(["dim=[50, 100]", "loss=auc"])
    {'dim': [50, 100], 'loss': 'auc'}
    """
    return dict(map(_parse_assignment, words))


def _parse_assignment(words: str) -> tuple[str, Any]:
    name, equals, value = words.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise InputError(f"--set {words!r} is not NAME=VALUE; write for instance --set dim=100")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError):
        return name.strip(), value.strip()


def read_parameters(path: Path, kind: str = "wsabie") -> Settings:
    """Read the parameters of a kind of model; "none" stands for None, since TOML has no null.

    Raises
    ------
    InputError
        The file cannot be read, is not TOML, or names an unknown parameter.
    """
    from wsabie.io.space_declaration import read_toml_tables

    return _check_parameters(read_toml_tables(path), kind, f"{path}: ")


def _check_parameters(parameters: Settings, kind: str, origin: str) -> Settings:
    """Return the parameters of a kind of model with None for "none"; refuse unknown ones."""
    for name in parameters:
        check_parameter_name(kind, name, origin)
    return {name: None if value == "none" else value for name, value in parameters.items()}
