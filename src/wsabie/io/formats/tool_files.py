"""Files of annotation tools beside pictures: what they hold, and how it is read or taken over."""

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.core.folder_tree import walk_folder
from wsabie.io.parsers.text_files import format_path, read_head

_ENDINGS, _MAX_FILES, _HEAD_BYTES = (".txt", ".xml", ".json", ".yaml", ".yml", ".csv"), 50, 4096
_UNREAD = "which are not read; export them as COCO's JSON, or as a table of files"
_VOC = "objects of Pascal VOC"
_TOOLS = {
    "boxes of YOLO": re.compile(rb"\d+([ \t]+-?\d*\.?\d+(e-?\d+)?){4,}\s*(\n|$)", re.IGNORECASE),
    "shapes of labelme": re.compile(rb'\s*\{(?=[^\0]*"shapes"\s*:)'),
    "names of classes of YOLO": re.compile(rb"(?s)(?=[^\0]*^(train|val|path|nc):)[^\0]*^names:", re.MULTILINE),
    "boxes of Create ML": re.compile(rb'\s*\[\s*\{(?=[^\0]*"coordinates"\s*:)'),
    "regions of VIA": re.compile(rb"(\s*\{|[^\n]*\bregion_)[^\0]*shape_attributes"),
    "tags of CVAT": re.compile(rb"\s*(<\?[^>]*>\s*)?<annotations>"),
    f"{_VOC} without JPEGImages or Annotations": re.compile(rb"\s*(<\?[^>]*>\s*)?<annotation\b"),
}
"""First bytes of files of other tools, which are not read."""
_COCO = re.compile(rb'\s*\{.*"(images|annotations|categories)"\s*:\s*\[\s*[{\]]', re.DOTALL)
_MEMBER = re.compile(rb'"(file_name|image_id|supercategory)"\s*:')
_LABEL_STUDIO = re.compile(
    rb'\s*\[\s*\{(?=[^\0]*"(annotations"\s*:\s*\[[^\0]*"result"|annotation_id")\s*:)|[^\n]*\bannotation_id\b'
)
"""First bytes of exports of Label Studio: of both forms of JSON, and of CSV."""


def is_coco_file(file: Path) -> bool:
    """Return True if a file holds images, categories and annotations in JSON."""
    if not file.name.lower().removesuffix(".gz").endswith(".json") or not file.is_file():
        return False
    content = read_head(file)
    return _COCO.match(content) is not None and _MEMBER.search(content) is not None


def describe_tool(file: Path, head: bytes) -> str:
    """Return advice on a file of another tool, by its first bytes; "" for other files."""
    tool = _find_tool(head)
    return tool and f"{file} holds {tool}, {_UNREAD}"


def _find_tool(head: bytes) -> str:
    return next((tool for tool, mark in _TOOLS.items() if mark.match(head)), "")


def find_tool_advice(folder: Path) -> str:
    """Return advice on one of the first files of another tool below a folder; "" where there is none."""
    files = islice(_iterate_files(folder), _MAX_FILES) if folder.is_dir() else ()
    return next((advice for file, head in files if (advice := describe_tool(file, head))), "")


def list_tool_notes(folder: Path) -> list[str]:
    """Return a remark on each kind of annotations below a folder: how many files, and what reads them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "1.txt").write_text("0 0.5 0.5 0.1 0.1\\n")
    ...     [note.partition("hold")[2] for note in list_tool_notes(Path(folder))]
    ["s boxes of YOLO, which are not read; export them as COCO's JSON, or as a table of files"]
    """
    kinds = defaultdict[str, list[tuple[str, str]]](list)
    for file, head in _iterate_files(folder):
        content, remedy = _classify_file(file, head)
        kinds[content].append((format_path(file.relative_to(folder)), remedy))
    kinds.pop("", None)
    return [
        f"in {folder} {len(files):,} files (such as {files[0][0]}) hold {content}, {files[0][1]}"
        if len(files) > 1
        else f"in {folder} 1 file ({files[0][0]}) holds {content}, {files[0][1]}"
        for content, files in kinds.items()
    ]


def _classify_file(file: Path, head: bytes) -> tuple[str, str]:
    """Return what a file holds and what to do with it; two empty texts for other files."""
    take_over = f"which are not read yet; to take them over: `collection.import_(DIR, {format_path(file)!r})`"
    if is_coco_file(file):
        return "annotations of COCO", take_over
    if _LABEL_STUDIO.match(head):
        return "answers of Label Studio", take_over
    tool = _find_tool(head)
    if (
        tool.startswith(_VOC)
        and file.parent.name == "Annotations"
        and (data := file.parent.parent / "JPEGImages").is_dir()
    ):
        return (
            _VOC,
            f"which are not tags here; to learn from them: `train({format_path(data.parent)!r}, model=MODEL)`",
        )
    return tool, _UNREAD


def _iterate_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield text files below a folder, hidden ones aside, with their first bytes."""
    for parent, folders, names in walk_folder(folder, lambda _: None):
        folders[:] = sorted(name for name in folders if name[0] != ".")
        for name in sorted(name for name in names if name.lower().endswith(_ENDINGS) and name[0] != "."):
            try:
                yield Path(parent, name), read_head(Path(parent, name), _HEAD_BYTES)
            except InputError:  # it cannot be read, and says nothing
                continue
