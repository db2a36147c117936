"""Folders of any depth, where `os.walk` of Python 3.11 fails below a thousand."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path


def walk(folder: str | Path, onerror: Callable[[OSError], None]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield (path, folders, files) of a folder and of all below it, from the top; links to folders are not followed.

    Parameters
    ----------
    folder : str or Path
    onerror : callable
        Receives the error of a folder that cannot be read.

    Yields
    ------
    tuple
        The list of folders may be changed: what is taken out is not entered, and the order is kept.
    """
    stack = [os.fspath(folder)]
    while stack:
        path = stack.pop()
        folders: list[str] = []
        files: list[str] = []
        links: set[str] = set()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else files).append(entry.name)
                    if entry.is_symlink():
                        links.add(entry.name)
        except OSError as error:
            onerror(error)
            continue
        yield path, folders, files
        stack += [f"{path.rstrip(os.sep)}{os.sep}{name}" for name in reversed(folders) if name not in links]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
