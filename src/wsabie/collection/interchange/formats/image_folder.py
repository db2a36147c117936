"""ImageFolder of Hugging Face's datasets: pictures, and `metadata.jsonl` with a line for each.

    {"file_name": "2024/a.jpg", "labels": ["gull", "sea"]}

Labels of regions become labels of the whole picture.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from wsabie.collection.interchange.formats.picture_files import ExportNames, PlacementMode, find_original, place_picture
from wsabie.collection.interchange.formats.tag_record import Tag, group_by_item
from wsabie.io.parsers.array_builders import RowError
from wsabie.storage.atomic_files import replace_file
from wsabie.storage.rejects import Rejects


def write_image_folder(
    tags: Iterable[Tag], out: Path, *, folder: Path, mode: PlacementMode, rejects: Rejects
) -> tuple[int, int]:
    """Write pictures and their labels; return the numbers of tags and of pictures.

    Parameters
    ----------
    tags : iterable of Tag
        Grouped by item.
    out : Path
        New folder.
    folder : Path
        Folder of the collection.
    mode : {"copy", "hardlink", "symlink"}
    rejects : Rejects
        Collects pictures whose file is missing.
    """
    names, n, n_pictures = ExportNames(), 0, 0
    with replace_file(out / "metadata.jsonl") as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        for group in group_by_item(tags):
            try:
                picture, name = find_original(group[0], folder), names.give(group[0])
                place_picture(picture, out / name, mode)
            except RowError as error:
                rejects.add(group[0].path, error.reason, error.detail)
                continue
            labels = list(dict.fromkeys(tag.label for tag in group))
            stream.write(json.dumps({"file_name": name, "labels": labels}, ensure_ascii=False) + "\n")
            n, n_pictures = n + len(labels), n_pictures + 1
    return n, n_pictures
