"""Is-a lists on the command line: `--hierarchy`, and `wsabie hierarchy`."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import label_names, quoted, trained_on
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.storage.outputs import refuse_unwritable

if TYPE_CHECKING:
    from wsabie.labels.hierarchy import Hierarchy
    from wsabie.labels.similar import SharedParents

SHOWN_MARKS = {"true": "*", "sibling": "~", "other": ""}
"""What stands before a label: signs and not colours, so that they can be copied, piped and told apart by everybody."""


def siblings_by(
    kinds: "Hierarchy | None", hierarchy: Sequence[Path] | None, annotator: Any, among: Any = None
) -> "SharedParents | None":
    """Which labels of a model, or those among them, are siblings by what some is-a lists say; None without a list.

    A list that training used is told: figures then say little.
    """
    if kinds is None:
        return None
    vocabulary = annotator.model.vocabulary_
    names = list(vocabulary) if among is None else vocabulary.names(among)
    similar = _known_siblings(kinds, hierarchy or (), "the model", names)
    if _used_in_training(kinds, hierarchy or (), annotator.facts):
        note(f"{_named(hierarchy)} was used in training: what it says of siblings is not what the model found out")
    return similar


def siblings_in(
    kinds: "Hierarchy | None", hierarchy: Sequence[Path] | None, data: Any
) -> "Callable[[Sequence[str]], SharedParents] | None":
    """What says which of some labels of the data are siblings by some is-a lists; None without a list."""
    return None if kinds is None else partial(_known_siblings, kinds, hierarchy or (), str(data))


def kinds_in(hierarchy: Sequence[Path] | None, parent_first: bool) -> "Hierarchy | None":
    """What some is-a lists say; None without a list."""
    from wsabie.sources.is_a import read_hierarchy

    if hierarchy:
        return read_hierarchy(*hierarchy, parent_first=parent_first)
    if parent_first:
        raise InputError("--parent-first says how --hierarchy is written; add --hierarchy FILE, or leave it out")
    return None


def _known_siblings(kinds: "Hierarchy", hierarchy: Sequence[Path], what: str, labels: Sequence[str]) -> "SharedParents":
    """Siblings among the labels; a list that knows none of them is refused."""
    similar = kinds.similar(labels)
    if not similar.known().any():
        raise InputError(
            f"{_named(hierarchy)} names none of the {plural(len(labels), 'label')} of {what}, such as "
            f"{quoted(labels)}; give an is-a list over such labels"
        )
    return similar


def _named(hierarchy: Sequence[Path] | None) -> str:
    return " and ".join(map(str, hierarchy or ()))


def sibling_facts(similar: "SharedParents") -> dict[str, Any]:
    """How many siblings labels have ([W] Table 1), for JSON and the line below a table."""
    import numpy as np

    counts, known = similar.siblings(), similar.known()
    return {
        "median": float(np.median(counts)),
        "median_of_known": float(np.median(counts[known])),
        "known_labels": int(known.sum()),
        "labels": len(counts),
    }


def tell_siblings(facts: dict[str, Any]) -> None:
    """The line below a table."""
    known, labels = facts["known_labels"], facts["labels"]
    note(
        f"median number of siblings: {facts['median']:,.0f}; the hierarchy knows {known:,} of {labels:,} labels"
        + ("" if known == labels else f", and of these the median is {facts['median_of_known']:,.0f}")
    )


def _used_in_training(kinds: "Hierarchy", paths: Sequence[Path], facts: dict[str, Any]) -> bool:
    """Whether training knew the list: it says so, or sub-folders of the same pictures were its labels."""
    from wsabie.sources.is_a import is_wordnet
    from wsabie.sources.metadata import find_metadata
    from wsabie.sources.open import open_source

    if kinds.fingerprint() in facts.get("hierarchies", ()):
        return True
    folders = [path for path in paths if path.is_dir() and not is_wordnet(path) and find_metadata(path) is None]
    return any(trained_on(open_source(folder), facts) for folder in folders)


def hierarchy_command(src: Path, target: Path, min_count: int, labels: Path | None, json: bool) -> None:
    """Mine "X is a Y" from text and write the pairs."""
    from wsabie.sources.is_a import mine, write_hierarchy

    refuse_unwritable(("is-a", target), inputs=(src, labels))
    said = mine(src, _known(labels), progress=TerminalProgress())
    pairs = said.pairs(min_count)
    if not pairs:
        few, lower = ("", "") if min_count == 1 else (f" {min_count} times", ", or a lower --min-count")
        raise InputError(f"{src} never says that something is a kind of something{few}; give more English text{lower}")
    write_hierarchy(target, pairs)
    if said.forgotten:
        note(f"the rarest pairs were forgotten on the way: counts may be too low by up to {said.forgotten:,}")
    counts = {"pairs": len(pairs), "children": len({p[0] for p in pairs}), "parents": len({p[1] for p in pairs})}
    if json:
        show_json({"schema": 1, "out": str(target), **counts, "counts_too_low_by": said.forgotten})
        return
    children = plural(counts["children"], "child", "children")
    out.print(f"{target}: {plural(len(pairs), 'pair')} of {children}, {plural(counts['parents'], 'parent')}")


def _known(labels: Path | None) -> Callable[[str], bool] | None:
    """Tells the labels of a model, or the lines of a file, by their spelling."""
    from wsabie.labels.hierarchy import spelling

    return None if labels is None else {spelling(name) for name in label_names(labels)}.__contains__
