"""Dispatch of a command to its version for spaces or for models of labels."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from wsabie.cli.framework import Scope, refuse_options
from wsabie.core.errors import InputError, require

if TYPE_CHECKING:
    from wsabie.io.space_declaration import SpaceDeclaration
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator

Run = TypeVar("Run")
"""Run of a command: a report, or None."""
IN_TABLES = Scope(space="a space has its settings in the tables of its TOML file")
ONLY_LABELS = Scope(space="it is for models of labels, and not for spaces")
ONLY_SPACES = Scope(labels="it is for spaces, which a TOML file declares")


def is_declaration(path: Path) -> bool:
    """Return True if DATA is a declaration of kinds and relations."""
    from wsabie.io.space_declaration import ENDING

    return path.suffix.lower() == ENDING


def read_test_declaration(path: Path, refusal: str) -> "SpaceDeclaration":
    """Read a declaration of test data; any other file is refused by a sentence that names an example."""
    from wsabie.io.space_declaration import ENDING, read_declaration

    require(is_declaration(path), f"{refusal}, with the test data, that ends with {ENDING}")
    return read_declaration(path)


def run_by_data(options: Any, on_rows: Callable[[Any], Run], on_space: "Callable[[Any, SpaceDeclaration], Run]") -> Run:
    """Run a command on rows or items, or on a declaration of a space; refuse options of the other."""
    from wsabie.io.space_declaration import read_declaration

    if is_declaration(options.data):
        refuse_options("space", options)
        return on_space(options, read_declaration(options.data))
    refuse_options("labels", options)
    return on_rows(options)


def run_by_model(options: Any, on_model: Callable[[Any], Run], on_space: "Callable[[Any, SpaceAnnotator], Run]") -> Run:
    """Run a command on a model of labels, or on a space; refuse options of the other."""
    from wsabie.storage.model_folder import require_model_folder

    space = load_space(options.model, getattr(options, "threads", None))
    if space is not None:
        refuse_options("space", options)
        return on_space(options, space)
    try:
        refuse_options("labels", options)
    except InputError:
        require_model_folder(options.model)  # a folder without a model is the greater fault
        raise
    return on_model(options)


def load_space(path: Path, threads: int | None = None) -> "SpaceAnnotator | None":
    """Load the space of a model folder; None if it holds another kind of model."""
    from wsabie.models.entity_space.space import Space
    from wsabie.models.entity_space.space_annotator import SpaceAnnotator
    from wsabie.storage.model_folder import read_folder_kind

    kind = read_folder_kind(path)
    if kind not in (SpaceAnnotator.kind, Space.kind):
        return None
    annotator = SpaceAnnotator.load(path) if kind == SpaceAnnotator.kind else SpaceAnnotator(Space.load(path))
    annotator.space.threads = threads
    return annotator


def list_declared_files(*declarations: "SpaceDeclaration | None") -> list[Path | None]:
    """List the input files of declarations."""
    return [
        file
        for declaration in declarations
        if declaration is not None
        for file in (
            *(kind.data for kind in declaration.kinds.values()),
            *(relation.pairs for relation in declaration.relations),
        )
    ]
