"""Word vectors and what is known of labels: how commands read them, and what `wsabie train` makes of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import label_names, quoted
from wsabie.faces.cli.terminal import TerminalProgress, note, plural

if TYPE_CHECKING:
    from wsabie.labels.knowledge import Knowledge
    from wsabie.labels.matching import Matched
    from wsabie.labels.vectors import Vectors


def vectors_of(path: Path, **options: Any) -> "Vectors":
    """The word vectors of a file; options are those of `read_vectors`."""
    from wsabie.sources.vectors import read_vectors

    return read_vectors(path, progress=TerminalProgress(), **options)


def known_of(paths: Sequence[Path], stated: Sequence[str] = ()) -> "Knowledge":
    """What some files know, and lists of pairs given as RELATION=FILE."""
    from wsabie.sources.knowledge import read_knowledge

    relations = {}
    for text in stated:
        relation, equals, file = text.partition("=")
        if not equals or not relation or not file or relation in relations:
            raise InputError(f"--pairs {text!r} is not RELATION=FILE, each relation once, such as has-part=parts.tsv")
        relations[relation] = Path(file)
    return read_knowledge(*paths, relations=relations)


def meant_by(known: "Knowledge", labels: Sequence[str], table: Path | None) -> "Matched":
    """What labels mean, by a table where there is one."""
    from wsabie.labels.matching import match_labels
    from wsabie.sources.knowledge import read_label_table

    return match_labels(known, labels, None if table is None else read_label_table(table))


def matched_labels(known: "Knowledge", labels: Path, table: Path | None) -> "Matched":
    """The labels of a file or model and what they mean; those that nothing is known of are told."""
    names = label_names(labels)
    matched = meant_by(known, names, table)
    if not any(matched.concepts):
        raise InputError(
            f"nothing is known of the {plural(len(names), 'label')} of {labels}, such as {quoted(names)}; give files "
            "that know them, or a --table of what they mean"
        )
    if missing := matched.missing:
        note(f"nothing is known of {len(missing):,} of {plural(len(names), 'label')}, such as {quoted(missing)}")
    return matched


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
    kind: str,
    dim: int | None,
    vectors: Path | None = None,
    knowledge: Sequence[Path] | None = None,
    labels: Path | None = None,
) -> dict[str, Any]:
    """Parameters of a kind of model: its word vectors and more, or those that its label vectors begin with."""
    from wsabie.models.systems import system_of

    if vectors is None:
        return {}
    read = vectors_of(vectors)
    if system_of(kind).needs != "vectors":
        if dim not in (None, read.dim):
            raise InputError(f"{vectors} has vectors of {read.dim} dimensions and --dim is {dim}; leave --dim out")
        return {"init_labels": read, "dim": read.dim}
    return {
        "vectors": read,
        "knowledge": known_of(knowledge) if knowledge else None,
        "labels": label_names(labels) if labels is not None else (),
    }
