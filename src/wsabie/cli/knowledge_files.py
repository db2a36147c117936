"""Files of knowledge about labels: word vectors, graphs, and is-a lists that name siblings."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.cli.framework import JsonObject, Options, Settings, option
from wsabie.cli.inputs import format_names, is_training_data, read_label_file
from wsabie.cli.output import TerminalProgress, format_count, print_note
from wsabie.cli.shared_options import HierarchyOptions
from wsabie.core.errors import InputError, require
from wsabie.models.estimator_specs import find_spec, list_parameters

if TYPE_CHECKING:
    from wsabie.core.arrays import Int64
    from wsabie.models.annotators import Annotator
    from wsabie.vocabulary.concept_hierarchy import Hierarchy
    from wsabie.vocabulary.concept_matching import LabelConcepts
    from wsabie.vocabulary.knowledge_graph import KnowledgeGraph
    from wsabie.vocabulary.label_similarity import SiblingSimilarity
    from wsabie.vocabulary.word_vectors import WordVectors

SHOWN_MARKS = {"true": "*", "sibling": "~", "other": ""}
"""Signs before labels; unlike colours, they can be copied, piped and told apart by everybody."""


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
            fact = f"{self.vectors} has vectors of {vectors.dim} dimensions and --dim is {dim}"
            require(dim in (None, vectors.dim), f"{fact}; leave --dim out")
            return {"init_labels": vectors, "dim": vectors.dim}
        labels = read_label_file(self.labels) if self.labels else ()
        knowledge = load_knowledge(self.knowledge) if self.knowledge else None
        return {"vectors": vectors, "knowledge": knowledge, "labels": labels}


def match_model_siblings(
    lists: HierarchyOptions, annotator: "Annotator", label_ids: "Int64 | None" = None
) -> "SiblingSimilarity | None":
    """Find siblings among the labels of a model (or among `label_ids`) by is-a lists; None without a list.

    A note says so if training used a list, since its figures are then optimistic.
    """
    if lists.tree is None:
        return None
    vocabulary = annotator.model.vocabulary_
    names = list(vocabulary) if label_ids is None else vocabulary.names(label_ids)
    similar = _find_siblings(lists.tree, lists.names, "the model", names)
    if _is_used_in_training(lists.tree, lists.hierarchy or (), annotator.facts):
        print_note(f"{lists.names} was used in training, so sibling figures are optimistic")
    return similar


def match_data_siblings(lists: HierarchyOptions, data: object) -> "Callable[[Sequence[str]], SiblingSimilarity] | None":
    """Return a function that finds siblings among labels by is-a lists; None without a list."""
    return None if lists.tree is None else partial(_find_siblings, lists.tree, lists.names, str(data))


def _find_siblings(tree: "Hierarchy", lists: str, owner: str, labels: Sequence[str]) -> "SiblingSimilarity":
    """Find siblings among the labels; refuse lists that know none of them."""
    similar = tree.find_siblings(labels)
    if not similar.is_known().any():
        unknown = f"{format_count(len(labels), 'label')} of {owner}, such as {format_names(labels)}"
        raise InputError(f"{lists} names none of the {unknown}; give an is-a list over these labels")
    return similar


def summarize_siblings(similar: "SiblingSimilarity") -> JsonObject:
    """Count the siblings of labels, as in Weston et al. 2010, table 1."""
    import numpy as np

    counts, is_known = similar.siblings(), similar.is_known()
    return {
        "median": float(np.median(counts)),
        "median_of_known": float(np.median(counts[is_known])),
        "known_labels": int(is_known.sum()),
        "labels": len(counts),
    }


def print_siblings(facts: JsonObject) -> None:
    """Print the median number of siblings below a table."""
    n_known, n_labels, more = facts["known_labels"], facts["labels"], ""
    if n_known != n_labels:
        more = f", and of these the median is {facts['median_of_known']:,.0f}"
    coverage = f"the hierarchy knows {n_known:,} of {n_labels:,} labels{more}"
    print_note(f"median number of siblings: {facts['median']:,.0f}; {coverage}")


def _is_used_in_training(tree: "Hierarchy", paths: Sequence[Path], facts: JsonObject) -> bool:
    """Return True if training used the lists: by its facts, or by folders of the same pictures."""
    from wsabie.io.data_sources import open_source
    from wsabie.io.formats.media_folder import find_metadata
    from wsabie.io.vocabulary.hierarchy_files import is_wordnet_folder

    if tree.fingerprint() in facts.get("hierarchies", ()):
        return True
    folders = [path for path in paths if path.is_dir() and not is_wordnet_folder(path) and find_metadata(path) is None]
    return any(is_training_data(open_source(folder), facts) for folder in folders)
