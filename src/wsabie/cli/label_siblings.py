"""Is-a lists on the command line: `--hierarchy`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.data_inputs import format_names
from wsabie.cli.framework import JsonObject
from wsabie.cli.model_inputs import is_training_data
from wsabie.cli.output import format_count, print_note
from wsabie.cli.shared_options import HierarchyOptions
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.core.arrays import Int64
    from wsabie.models.annotators import Annotator
    from wsabie.vocabulary.concept_hierarchy import Hierarchy
    from wsabie.vocabulary.label_similarity import SiblingSimilarity

SHOWN_MARKS = {"true": "*", "sibling": "~", "other": ""}
"""Signs before labels; unlike colours, they can be copied, piped and told apart by everybody."""


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
        raise InputError(f"{lists} names none of the {unknown}; give an is-a list over such labels")
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
    from wsabie.io.formats.media_folder import find_metadata
    from wsabie.io.recognition import open_source
    from wsabie.io.vocabulary.hierarchy_files import is_wordnet_folder

    if tree.fingerprint() in facts.get("hierarchies", ()):
        return True
    folders = [path for path in paths if path.is_dir() and not is_wordnet_folder(path) and find_metadata(path) is None]
    return any(is_training_data(open_source(folder), facts) for folder in folders)
