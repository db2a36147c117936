"""Completion of label names."""

from typing import NamedTuple

from wsabie.collection.db.database import begin_read
from wsabie.collection.folder.collection import Collection
from wsabie.collection.overview.label_details import read_labels_by_number
from wsabie.collection.search.query_parsing import read_names

_SYNONYM_SHARE = 4  # one in so many places is reserved for synonyms


class LabelCompletion(NamedTuple):
    """Completed label; `other` is the matching synonym (None: its name), `language` that of the match."""

    id: int
    name: str
    other: str | None
    language: str
    items: int


def complete_label(collection: Collection, start: str, k: int = 20) -> list[LabelCompletion]:
    """Return labels with a name that begins with `start`, in any language; main names come first.

    A quarter of the places is reserved for matching synonyms, even if many main names match.
    """
    prefix = start.casefold()
    with begin_read(collection.engine) as connection:
        names_index = read_names(connection)
        own_matches = sorted(
            (entry for entry in names_index.labels.items() if entry[1].casefold().startswith(prefix)),
            key=lambda entry: (len(entry[1]), entry[1]),
        )
        matched_ids = {number for number, _ in own_matches}
        synonyms_by_label: dict[int, str] = {}
        synonyms = (name for name in names_index.others if name.casefold().startswith(prefix))
        for name in sorted(synonyms, key=lambda name: (len(name), name)):
            if (number := names_index.others[name]) not in matched_ids:
                synonyms_by_label.setdefault(number, name)
        n_synonyms = max(k - len(own_matches), min(k // _SYNONYM_SHARE, len(synonyms_by_label)))
        matched_names: dict[int, str | None] = {number: None for number, _ in own_matches[: k - n_synonyms]}
        matched_names |= dict(list(synonyms_by_label.items())[:n_synonyms])
        labels = read_labels_by_number(connection, list(matched_names))
    completions = []
    for number, synonym in matched_names.items():
        if (entry := labels.get(number)) is not None:
            language = entry.language if synonym is None else names_index.languages[synonym]
            completions.append(LabelCompletion(number, entry.name, synonym, language, entry.items))
    return completions
