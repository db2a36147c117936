"""The ImageFolder of Hugging Face's datasets: pictures, and `metadata.jsonl` with a line for each.

    {"file_name": "2024/a.jpg", "labels": ["gull", "sea"]}

Labels of regions are labels of the picture here.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from wsabie.catalogue.formats.pictures import How, Names, original, put
from wsabie.catalogue.formats.record import Tag, by_item
from wsabie.sources.build import BadRow
from wsabie.storage.atomic import replacing
from wsabie.storage.rejects import Rejects


def write_image_folder(tags: Iterable[Tag], out: Path, *, folder: Path, how: How, rejects: Rejects) -> tuple[int, int]:
    """Write pictures and their labels; how many tags and pictures there were. The list of them comes last.

    Parameters
    ----------
    tags : iterable of Tag
        Item by item.
    out : Path
        A new folder.
    folder : Path
        That of the collection.
    how : {"copy", "hardlink", "symlink"}
    rejects : Rejects
        Lists pictures that are not there.
    """
    names, n, n_pictures = Names(), 0, 0
    with replacing(out / "metadata.jsonl") as draft, draft.open("w", encoding="utf-8", newline="\n") as stream:
        for group in by_item(tags):
            try:
                picture, name = original(group[0], folder), names.give(group[0])
                put(picture, out / name, how)
            except BadRow as bad:
                rejects.add(group[0].path, bad.reason, bad.detail)
                continue
            labels = list(dict.fromkeys(tag.label for tag in group))
            stream.write(json.dumps({"file_name": name, "labels": labels}, ensure_ascii=False) + "\n")
            n, n_pictures = n + len(labels), n_pictures + 1
    return n, n_pictures
