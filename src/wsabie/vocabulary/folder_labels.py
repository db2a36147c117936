"""Labels from the names of folders, and the names that are never labels.

Never labels are folders that hold everything (`images`), sides of a split, dates, folders of unsorted files,
and folders that systems make. `train` is a label beside many others, such as `car`; `05` is a date in or beside one.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from functools import cache

SPLITS = {"train", "training", "test", "testing", "valid", "validation", "val", "dev"}
"""Sides of a split: they are parts of a collection and hardly its labels, nor its shards."""
SYSTEM_FOLDERS = {"@eadir", "#recycle", "#snapshot", "$recycle.bin", "__macosx", "lost+found", "recycler",
                  "system volume information", "@recycle", "@tmp", "thumbs", "thumbnails"}  # fmt: skip
"""Folders that systems make, in lower case; what is in them is nobody's."""
_CONTAINER = re.compile(
    r"images?|imgs?|(my_)?(pictures?|photos?)|pics|photographs|media|data(sets?)?|files|items|jpegimages|jpe?gs?|pngs?|raws?"
    r"|audios?|sounds?|wavs?|mp3|clips|recordings|texts?|txt|documents|docs|dcim|originals|masters|(ex|im)ports?"
    r"|(up|down)loads?|incoming|inbox|unsorted|unsortiert|to_sort|sorted|new(_folder)?|neu(er_ordner)?|untitled_folder|misc"
    r"|miscellaneous|unlabell?ed|untagged|te?mp|backups?|trash|bilder|fotos|annotations|labels|assets|static|(in|out)puts?"
    r"|camera_roll|whatsapp_images|caches?|fold_?\d+"
)
_YEAR = re.compile(r"(19|20)\d\d([-_. ]?(0\d|1[0-2])([-_. ]?[0-3]\d)?)?|(19|20)\d\d[-_ ]+(19|20)\d\d")
_MONTH = re.compile(
    r"[0-3]?\d([-_. ]+([0-3]?\d))?|([01]?\d[-_. ]*)?(jan(uary?)?|feb(ruary?)?|mar(ch)?|märz|apr(il)?|ma[iy]|"
    r"jun[ei]?|jul[yi]?|aug(ust)?|sept?(ember)?|o[ck]t(ober)?|nov(ember)?|de[cz](ember)?)"
)
_MONTH_OF_YEAR = re.compile(rf"({_MONTH.pattern})[-_. ]+(19|20)\d\d")
_NUMBERED = re.compile(r"\d{3}(canon|nikon|_?pana|msdcf|olymp|_?fuji|apple|media|[a-z_]{5})")  # of cameras


_MIN_SIBLINGS = 5  # possible labels beside `train` that make it a label


class FolderLabels:
    """Labels of files by the names of their folders.

    Parameters
    ----------
    paths : iterable of str
        Paths of all files, with `/`.
    root : str
        Name of the folder that holds them all.
    keep_any : bool
        Where no name could be a label, all are.

    Examples
    --------
    >>> labels = FolderLabels(["2020/05/dog/1.jpg", "2020/05/cat/2.jpg", "inbox/3.jpg"])
    >>> labels.get_labels("2020/05/dog/1.jpg"), labels.get_labels("inbox/3.jpg")
    (('dog',), ())
    """

    def __init__(self, paths: Iterable[str], root: str = "", *, keep_any: bool = False) -> None:
        self._root = root
        folders = [path.rpartition("/")[0] for path in paths]
        self._is_single_file, self._folders = len(folders) == 1, set(folders)
        self._siblings: defaultdict[str, set[str]] = defaultdict(set)
        for folder in self._folders:
            parts = folder.split("/") if folder else []
            for depth, part in enumerate(parts):
                self._siblings["/".join(parts[:depth])].add(part.casefold())
        self._list = cache(self._list_labels)
        self._keep_all = keep_any and not any(map(self._list, self._folders))

    @property
    def can_distinguish(self) -> bool:
        """True if folders tell files apart; a single one that holds all the files ("images") does not."""
        labels = {self._list(folder) for folder in self._folders}
        return labels != {()} and (self._is_single_file or len(labels) > 1)

    def get_labels(self, path: str) -> tuple[str, ...]:
        """Return the labels of a file."""
        folder = path.rpartition("/")[0]
        return tuple(folder.split("/")) if folder and self._keep_all else self._list(folder)

    def list_other_names(self) -> list[str]:
        """Return the names of folders that are not labels."""
        names = {part for folder in self._folders if folder for part in folder.split("/")}
        return sorted(names - {label for folder in self._folders for label in self.get_labels(f"{folder}/")})

    def _list_labels(self, folder: str) -> tuple[str, ...]:
        parts, labels = folder.split("/") if folder else [], []
        in_date = is_date(self._root)
        for depth, part in enumerate(parts):
            siblings = self._siblings["/".join(parts[:depth])]
            in_date = is_date(part, in_date or any(map(is_date, siblings)))
            if not in_date and not is_never_label(part, siblings):
                labels.append(part)
        return tuple(labels)


def is_date(name: str, inside: bool = False) -> bool:
    """Return whether a folder is named by a year or day, or a month of a year; `inside` one by a month."""
    folded = name.strip().casefold()
    forms = (_YEAR, _MONTH_OF_YEAR, _MONTH) if inside else (_YEAR, _MONTH_OF_YEAR)
    return any(form.fullmatch(folded) for form in forms)


def is_never_label(name: str, siblings: Collection[str] = ()) -> bool:
    """Return whether a folder, beside others with lower-case names, is not named after its contents.

    Examples
    --------
    >>> is_never_label("Images"), is_never_label("train"), is_never_label("train", {"car", "bus", "cat", "dog", "sofa"})
    (True, True, False)
    """
    folded = name.strip().casefold()
    if folded in SPLITS:
        possible_labels = {sibling for sibling in siblings if sibling != folded and not is_never_label(sibling)}
        return len(possible_labels) < _MIN_SIBLINGS or bool({*siblings} & SPLITS - {folded})
    is_container = _CONTAINER.fullmatch(re.sub(r"[-_ ]+", "_", folded)) or _NUMBERED.fullmatch(folded)
    return bool(is_container) or folded in SYSTEM_FOLDERS or is_date(name) or folded[:1] in {"", ".", "@", "$"}
