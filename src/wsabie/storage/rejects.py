"""Rejects: skipped inputs, counted by reason and listed in a file. Nothing is dropped silently."""

import json
from collections import Counter
from pathlib import Path

from wsabie.core.errors import InputError
from wsabie.storage.atomic_files import replace_file

LISTED = 100_000


class Rejects:
    """Collector of skipped inputs: counted, the first `most` listed; `strict` makes the first an error.

    Examples
    --------
    >>> rejects = Rejects()
    >>> rejects.add("a.jpg", "truncated picture")
    >>> rejects.summary()
    '1 skipped: truncated picture (1)'
    """

    def __init__(self, *, strict: bool = False, most: int = LISTED) -> None:
        self.strict, self.most = strict, most
        self.counts: Counter[str] = Counter()
        self.listed: list[tuple[str, str, str]] = []

    def add(self, where: str, reason: str, detail: str = "") -> None:
        """Note that `where` (file, file:line, id) was skipped; `reason` is one of few phrases to count by.

        Raises
        ------
        InputError
            In strict mode.
        """
        if self.strict:
            raise InputError(f"{where}: {reason}{f' ({detail})' if detail else ''}; run without --strict to skip it")
        self.counts[reason] += 1
        if len(self.listed) < self.most:
            self.listed.append((where, reason, detail))

    def add_all(self, rejects: "Rejects") -> None:
        """Take over the entries of another list; never strict, for these inputs were skipped already."""
        self.counts += rejects.counts
        self.listed += rejects.listed[: self.most - len(self.listed)]

    def __len__(self) -> int:
        return self.counts.total()

    def summary(self) -> str:
        """Return one line on how many were skipped and why; empty when none."""
        if not self.counts:
            return ""
        reasons = ", ".join(f"{reason} ({n:,})" for reason, n in self.counts.most_common())
        return f"{len(self):,} skipped: {reasons}"

    def write(self, path: str | Path) -> None:
        """Write one JSON object a line: {"where", "reason", "detail"}; the last counts those not listed."""
        with replace_file(path) as draft, draft.open("w", encoding="utf-8", errors="backslashreplace") as out:
            for where, reason, detail in self.listed:
                out.write(json.dumps({"where": where, "reason": reason, "detail": detail}, ensure_ascii=False) + "\n")
            if len(self) > len(self.listed):
                out.write(json.dumps({"not_listed": len(self) - len(self.listed)}) + "\n")
