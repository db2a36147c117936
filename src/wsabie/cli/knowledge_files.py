"""Word vectors and knowledge of labels, for commands and for the parameters of `wsabie train`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.data_inputs import format_names
from wsabie.cli.framework import Options, Settings, option
from wsabie.cli.model_inputs import read_label_file
from wsabie.cli.output import TerminalProgress, format_count, print_note
from wsabie.core.errors import InputError
from wsabie.models.estimator_specs import find_spec, list_parameters

if TYPE_CHECKING:
    from wsabie.vocabulary.concept_matching import LabelConcepts
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
    from wsabie.vocabulary.word_vectors import WordVectors


def load_word_vectors(path: Path, **options: Any) -> "WordVectors":
    """Read word vectors; the options are those of `read_word_vectors`."""
    from wsabie.io.vocabulary.word_vector_files import read_word_vectors

    return read_word_vectors(path, progress=TerminalProgress(), **options)


def load_knowledge(paths: Sequence[Path], pair_options: Sequence[str] = ()) -> "KnowledgeGraph":
    """Read a knowledge graph from files, and from lists of pairs given as RELATION=FILE."""
    from wsabie.io.vocabulary.knowledge_graphs import read_knowledge_graph

    relations = {}
    for pairs in pair_options:
        relation, equals, file = pairs.partition("=")
        if not equals or not relation or not file or relation in relations:
            raise InputError(f"--pairs {pairs!r} is not RELATION=FILE, each relation once, such as has-part=parts.tsv")
        relations[relation] = Path(file)
    return read_knowledge_graph(*paths, relations=relations)


def match_concepts(graph: "KnowledgeGraph", labels: Sequence[str], table: Path | None) -> "LabelConcepts":
    """Match labels to concepts, with corrections from a table if given."""
    from wsabie.io.vocabulary.knowledge_graphs import read_label_table
    from wsabie.vocabulary.concept_matching import match_labels

    return match_labels(graph, labels, None if table is None else read_label_table(table))


def match_label_concepts(graph: "KnowledgeGraph", labels: Path, table: Path | None) -> "LabelConcepts":
    """Match the labels of a file or model to concepts, and report labels without any."""
    names = read_label_file(labels)
    concepts = match_concepts(graph, names, table)
    if not any(concepts.concepts):
        unknown = f"{format_count(len(names), 'label')} of {labels}, such as {format_names(names)}"
        remedy = "give files that know them, or a --table of what they mean"
        raise InputError(f"nothing is known of the {unknown}; {remedy}")
    if missing := concepts.missing:
        counts = f"{len(missing):,} of {format_count(len(names), 'label')}"
        print_note(f"nothing is known of {counts}, such as {format_names(missing)}")
    return concepts


class WordOptions(Options, panel="Knowledge of labels"):
    """Options of the words of labels."""

    vectors: Path | None = option("Word vectors (word2vec, GloVe, fastText .vec), for what labels mean.")
    knowledge: list[Path] | None = option(
        "WordNet, or other files that give the terms of labels; several complete each other.", metavar="<path>"
    )


class LabelOptions(WordOptions):
    """Options of knowledge about labels."""

    relations: str | None = option(
        "For parts: related labels, object TAB part a line (see `wsabie labels pairs`); or RELATION=FILE, such as "
        "is-a=kinds.tsv.",
        metavar="FILE",
    )
    labels: Path | None = option("Labels without rows that devise and conse can rank too: a file, one a line.")

    def refuse_useless(self, kind: str) -> None:
        """Refuse word vectors where a kind has no use for them, and a kind that needs them without."""
        parameters = list_parameters(kind)
        if find_spec(kind).needs == "vectors" and not self.vectors:
            raise InputError(f"--kind {kind} needs word vectors; add --vectors FILE")
        if self.vectors and not {"vectors", "init_labels"} & parameters.keys():
            reason = f"--vectors is for kinds that use word vectors, and {kind} does not"
            raise InputError(f"{reason}; leave it out, or use --kind devise")
        for flag in ("knowledge", "labels"):
            if getattr(self, flag) and flag not in parameters:
                raise InputError(f"--{flag} is for kinds that rank labels by their words, such as devise; leave it out")

    def make_parameters(self, kind: str, dim: int | None) -> Settings:
        """Make the parameters of a model that come from word vectors: features or initial label vectors."""
        if self.vectors is None:
            return {}
        vectors = load_word_vectors(self.vectors)
        if find_spec(kind).needs != "vectors":
            if dim not in (None, vectors.dim):
                fact = f"{self.vectors} has vectors of {vectors.dim} dimensions and --dim is {dim}"
                raise InputError(f"{fact}; leave --dim out")
            return {"init_labels": vectors, "dim": vectors.dim}
        labels = read_label_file(self.labels) if self.labels else ()
        knowledge = load_knowledge(self.knowledge) if self.knowledge else None
        return {"vectors": vectors, "knowledge": knowledge, "labels": labels}
