"""What `wsabie train` makes of word vectors and of what is known of labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import label_names
from wsabie.faces.cli.terminal import TerminalProgress


def refuse_other_kinds(kind: str, given: dict[str, Any]) -> None:
    """Refuse word vectors where a kind has no use for them, and a kind that needs them without."""
    from wsabie.models.systems import parameters_of, system_of

    known = parameters_of(kind)
    if system_of(kind).needs == "vectors" and not given.get("vectors"):
        raise InputError(f"--kind {kind} needs word vectors; add --vectors FILE")
    if given.get("vectors") and not {"vectors", "init_labels"} & known.keys():
        raise InputError(
            f"--vectors says what labels mean, and {kind} does not ask; leave it out, or use --kind devise"
        )
    for flag in ("knowledge", "labels"):
        if given.get(flag) and flag not in known:
            raise InputError(f"--{flag} is for kinds that rank labels by their words, such as devise; leave it out")


def meaning_parameters(
    kind: str, vectors: Path | None, knowledge: Sequence[Path] | None, labels: Path | None
) -> dict[str, Any]:
    """Parameters of a kind of model: its word vectors and more, or those that its label vectors begin with."""
    from wsabie.models.systems import system_of
    from wsabie.sources.knowledge import read_knowledge
    from wsabie.sources.vectors import read_vectors

    if vectors is None:
        return {}
    read = read_vectors(vectors, progress=TerminalProgress())
    if system_of(kind).needs != "vectors":
        return {"init_labels": read, "dim": read.dim}
    return {
        "vectors": read,
        "knowledge": read_knowledge(*knowledge) if knowledge else None,
        "labels": label_names(labels) if labels is not None else (),
    }
