"""XMP, which photo programs read: sidecars beside pictures, or packets inside them.

Tags that are there already and of which the catalogue says nothing stay; those that it rejects are taken away. The
labels above a label are the broader names of its tag.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.base.input_files import is_regular
from wsabie.catalogue.drafts import DraftNote
from wsabie.catalogue.formats.record import Tag, by_item
from wsabie.sources.build import BadRow
from wsabie.sources.picture_tags import read_tags
from wsabie.sources.write_tags import write_embedded, write_sidecar
from wsabie.storage.atomic import DiskFullError
from wsabie.storage.rejects import Rejects

Names = tuple[str, ...]


def write_sidecars(
    tags: Iterable[Tag], place: Callable[[Tag], Path], *, rejects: Rejects, note: DraftNote | None = None
) -> tuple[int, int]:
    """Write tags beside the place of each item; how many tags and files there were.

    Parameters
    ----------
    tags : iterable of Tag
        Item by item.
    place : callable
        Where the picture of a tag lies, or would lie; raises `BadRow` to leave it out.
    rejects : Rejects
    note : DraftNote or None
        Of drafts among the user's pictures.
    """
    return _write(tags, place, write_sidecar, rejects, note)


def write_embedded_tags(
    tags: Iterable[Tag], place: Callable[[Tag], Path], *, rejects: Rejects, note: DraftNote | None = None
) -> tuple[int, int]:
    """The same, into the pictures themselves."""
    return _write(tags, place, write_embedded, rejects, note)


def _write(
    tags: Iterable[Tag],
    place: Callable[[Tag], Path],
    write: Callable[..., Path | bool | None],
    rejects: Rejects,
    note: DraftNote | None,
) -> tuple[int, int]:
    n = n_files = 0
    for group in by_item(tags):
        try:
            picture = place(group[0])
            there = list(read_tags(picture).tags) if is_regular(picture) else []
            names = together(there, group)
            if names != there:
                if note is not None:
                    note.cover(picture.parent)
                n_files += bool(write(picture, names, token=note and note.token))
            n += sum(tag.state != "rejected" for tag in group)
        except DiskFullError:
            raise
        except BadRow as bad:
            rejects.add(group[0].path, bad.reason, bad.detail)
        except InputError as error:
            rejects.add(group[0].path, "tags that could not be written", str(error))
    return n, n_files


def together(there: Sequence[Names], group: Sequence[Tag]) -> list[Names]:
    """The tags of a picture, as paths: those that are there, and those of the catalogue.

    Parameters
    ----------
    there : sequence of tuple of str
    group : sequence of Tag
        Of one item.
    """
    fitting = {tag.label: _path(tag) for tag in group if tag.state != "rejected"}
    rejected = {tag.label for tag in group if tag.state == "rejected" and not tag.region} - fitting.keys()
    kept = [path for path in there if path[-1] not in rejected and path[-1] not in fitting]
    same = {path[-1]: path for path in there if len(path) > 1}
    return kept + [path if len(path) > 1 else same.get(name, path) for name, path in fitting.items()]


def _path(tag: Tag) -> Names:
    path = (*tag.parents, tag.label)
    return (tag.label,) if any("|" in name for name in path) else path  # "|" separates the names of a path
