"""Rejects: skipped inputs, counted by reason and listed in a file. Nothing is dropped silently."""

import json
from collections import Counter
from pathlib import Path

from wsabie.core.errors import InputError, make_printable
from wsabie.storage.atomic_files import replace_file

MAX_LISTED = 100_000


class RowError(Exception):
    """Row that cannot be used: a short reason to count by, and a detail for the list of rejects."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason, self.detail = reason, make_printable(detail[:200])


class Rejects:
    """Collector of skipped inputs: counted, the first `most` listed; `strict` makes the first an error.

    Parameters
    ----------
    strict : bool, default False
        True: the first skipped input is an InputError.
    most : int, default 100,000
        Number of listed inputs; further ones are only counted.

    Attributes
    ----------
    counts : Counter of str
        Number of skipped inputs by reason.
    listed : list of (where, reason, detail)

    Examples
    --------
    >>> rejects = Rejects()
    >>> rejects.add("a.jpg", "truncated picture")
    >>> rejects.summary()
    '1 skipped: truncated picture (1)'
    """

    def __init__(self, *, strict: bool = False, most: int = MAX_LISTED) -> None:
        self.strict, self.most = strict, most
        self.counts: Counter[str] = Counter()
        self.listed: list[tuple[str, str, str]] = []

    def catch(self, where: Path | str, line: int | None = None) -> "_RowErrorCatcher":
        """Return a context that lists the RowError of its body, at this place or line of a file.

        Parameters
        ----------
        where : Path or str
            File, or id of an item.
        line : int or None
            Line of the file, from 1.

        Returns
        -------
        context manager

        Examples
        --------
        >>> rejects = Rejects()
        >>> with rejects.catch("tags.tsv", 3):
        ...     raise RowError("empty label name")
        >>> rejects.listed
        [('tags.tsv:3', 'empty label name', '')]
        """
        return _RowErrorCatcher(self, where, line)

    def add(self, where: Path | str, reason: str, detail: str = "") -> None:
        """Note that an input was skipped.

        Parameters
        ----------
        where : Path or str
            File, file:line, or id of an item.
        reason : str
            One of few phrases to count by.
        detail : str
            What distinguishes this input from others of the same reason.

        Raises
        ------
        InputError
            In strict mode.
        """
        if self.strict:
            raise InputError(f"{where}: {reason}{f' ({detail})' if detail else ''}; run without `strict` to skip it")
        self.counts[reason] += 1
        if len(self.listed) < self.most:
            self.listed.append((str(where), reason, detail))

    def add_all(self, rejects: "Rejects") -> None:
        """Take over the entries of another list; never strict, for these inputs were skipped already.

        Parameters
        ----------
        rejects : Rejects
        """
        self.counts += rejects.counts
        self.listed += rejects.listed[: self.most - len(self.listed)]

    def clear(self) -> None:
        """Forget all entries."""
        self.counts.clear()
        self.listed.clear()

    def __len__(self) -> int:
        return self.counts.total()

    def summary(self) -> str:
        """Return one line on how many were skipped and why; empty when none.

        Returns
        -------
        str
        """
        if not self.counts:
            return ""
        reasons = ", ".join(f"{reason} ({n:,})" for reason, n in self.counts.most_common())
        return f"{len(self):,} skipped: {reasons}"

    def write(self, path: str | Path) -> None:
        """Write one JSON object a line: {"where", "reason", "detail"}; the last counts those not listed.

        Parameters
        ----------
        path : str or Path
            File; one that is there is replaced.
        """
        with replace_file(path) as draft, draft.open("w", encoding="utf-8", errors="backslashreplace") as out:
            for where, reason, detail in self.listed:
                out.write(json.dumps({"where": where, "reason": reason, "detail": detail}, ensure_ascii=False) + "\n")
            if len(self) > len(self.listed):
                out.write(json.dumps({"not_listed": len(self) - len(self.listed)}) + "\n")


class _RowErrorCatcher:
    """Context manager of `Rejects.catch`: a class, because rows enter it by the million."""

    __slots__ = ("_line", "_rejects", "_where")

    def __init__(self, rejects: Rejects, where: Path | str, line: int | None) -> None:
        self._rejects, self._where, self._line = rejects, where, line

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if not isinstance(error, RowError):
            return False
        where = self._where if self._line is None else f"{self._where}:{self._line}"
        self._rejects.add(where, error.reason, error.detail)
        return True
