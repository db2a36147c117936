"""XMP for photo programs: sidecars beside pictures, or packets inside them.

Existing tags that the database does not know stay; rejected ones are removed. The ancestors of a label become the
broader names of its tag.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from wsabie.collection.folder.drafts import DraftNote
from wsabie.collection.interchange.tag_record import Tag, group_by_item
from wsabie.core.errors import InputError
from wsabie.core.input_files import is_regular_file
from wsabie.io.parsers.array_builders import RowError
from wsabie.io.tags.image_tags import read_image_tags
from wsabie.io.tags.tag_writer import write_embedded, write_sidecar
from wsabie.storage.atomic_files import DiskFullError
from wsabie.storage.rejects import Rejects

Names = tuple[str, ...]


def write_sidecars(
    tags: Iterable[Tag], place: Callable[[Tag], Path], *, rejects: Rejects, note: DraftNote | None = None
) -> tuple[int, int]:
    """Write tags beside the place of each item; return the numbers of tags and of files.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    place : callable
        Returns the path of a tag's picture, which need not exist; raises `RowError` to leave it out.
    rejects : Rejects
    note : DraftNote or None
        Record of drafts among the user's pictures.
    """
    return _write(tags, place, write_sidecar, rejects, note)


def write_embedded_tags(
    tags: Iterable[Tag], place: Callable[[Tag], Path], *, rejects: Rejects, note: DraftNote | None = None
) -> tuple[int, int]:
    """Write tags into the pictures themselves; otherwise as `write_sidecars`."""
    return _write(tags, place, write_embedded, rejects, note)


def _write(
    tags: Iterable[Tag],
    place: Callable[[Tag], Path],
    write: Callable[..., Path | bool | None],
    rejects: Rejects,
    note: DraftNote | None,
) -> tuple[int, int]:
    n = n_files = 0
    for group in group_by_item(tags):
        try:
            picture = place(group[0])
            existing = list(read_image_tags(picture).tags) if is_regular_file(picture) else []
            names = merge_tag_paths(existing, group)
            if names != existing:
                if note is not None:
                    note.cover(picture.parent)
                n_files += bool(write(picture, names, token=note and note.token))
            n += sum(tag.state != "rejected" for tag in group)
        except DiskFullError:
            raise
        except RowError as row_error:
            rejects.add(group[0].path, row_error.reason, row_error.detail)
        except InputError as error:
            rejects.add(group[0].path, "tags that could not be written", str(error))
    return n, n_files


def merge_tag_paths(existing: Sequence[Names], group: Sequence[Tag]) -> list[Names]:
    """Return the tags of a picture as paths: its own and those of the database.

    Parameters
    ----------
    existing : sequence of tuple of str
    group : sequence of Tag
        Tags of one item.
    """
    fitting = {tag.label: _make_path(tag) for tag in group if tag.state != "rejected"}
    rejected = {tag.label for tag in group if tag.state == "rejected" and not tag.region} - fitting.keys()
    unchanged = [path for path in existing if path[-1] not in rejected and path[-1] not in fitting]
    broader_paths = {path[-1]: path for path in existing if len(path) > 1}
    return unchanged + [path if len(path) > 1 else broader_paths.get(name, path) for name, path in fitting.items()]


def _make_path(tag: Tag) -> Names:
    path = (*tag.parents, tag.label)
    return (tag.label,) if any("|" in name for name in path) else path  # "|" separates the names of a path
