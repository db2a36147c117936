"""Who may ask: tokens with a role and a last day.

A file of tokens has a line for each: name TAB role TAB last day or "-" TAB SHA-256 of the token in hex. The tokens
themselves are kept nowhere.
"""

import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from shlex import quote
from typing import Literal, NamedTuple, cast

from wsabie.base.errors import InputError
from wsabie.storage.atomic import held, readable, replacing

Role = Literal["read", "write"]
_ROLES = ("read", "write")
_LARGEST = 1 << 20
_LOOK_EVERY = 1.0  # seconds

_log = logging.getLogger("wsabie.serve")


class Token(NamedTuple):
    """A token, without what makes it one."""

    name: str
    role: Role
    last_day: date | None
    digest: str


class Caller(NamedTuple):
    """Whose request it is, and what they may do."""

    name: str
    role: Role


def digest(token: str) -> str:
    """What of a token is kept.

    Examples
    --------
    >>> digest("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """The tokens of a file.

    Raises
    ------
    InputError
        It cannot be read, others may write it, or a line is not as it should be.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}; make it: wsabie token {quote(str(path))} NAME")
    with readable(path), path.open("rb") as file:
        content, mode = file.read(_LARGEST + 1), os.fstat(file.fileno()).st_mode
    if mode & 0o022:
        raise InputError(f"others may write {path}, and so give themselves a token; run: chmod go-w {path}")
    if len(content) > _LARGEST:
        raise InputError(f"{path} is too large for a file of tokens; give the one that `wsabie token` wrote")
    found = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            found.append(_token(line, f"{path}:{number}"))
    return found


class TokenFile:
    """The tokens of a file as it is now: whose line is removed is refused within a second or so.

    A file that cannot be read any more has none.

    Raises
    ------
    InputError
        It cannot be used from the start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._looked, self._seen = time.monotonic(), _stat(path)
        self._tokens = read_tokens(path)

    def __iter__(self) -> Iterator[Token]:
        if time.monotonic() - self._looked > _LOOK_EVERY:
            self._looked, seen = time.monotonic(), _stat(self.path)
            if seen != self._seen:
                self._seen, self._tokens = seen, self._read()
        return iter(self._tokens)

    def _read(self) -> list[Token]:
        try:
            return read_tokens(self.path)
        except InputError as error:
            _log.error("nobody may ask: %s", error)
            return []


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_size, found.st_mtime_ns


def new_token(path: Path, name: str, role: Role, last_day: date | None = None) -> str:
    """Make a token, add it to the file, and return it: it cannot be shown again.

    Raises
    ------
    InputError
        The name stands in the file already, cannot be one, or the file cannot be read or written.
    """
    if not name or not name.isprintable() or len(name) > 100:
        raise InputError(f"{name[:40]!r} cannot be a name; give 1 to 100 characters that can be seen")
    token = secrets.token_urlsafe(32)
    with held(path.parent, wait=True):  # a token that another command adds meanwhile would be lost
        there = read_tokens(path) if path.exists() else []
        if any(one.name == name for one in there):
            raise InputError(f"{path} has a token of {name!r} already; remove its line first, or choose another name")
        with replacing(path) as draft:
            lines = [*map(_line, there), _line(Token(name, role, last_day, digest(token)))]
            draft.chmod(0o600)
            draft.write_text("".join(lines), encoding="utf-8")
    return token


def caller_of(given: str, tokens: Iterable[Token], today: date | None = None) -> Caller | None:
    """Whose token it is; None: nobody's, or its last day is over."""
    sought, found = digest(given), None
    for token in tokens:  # all of them, so that the time tells nothing
        if hmac.compare_digest(token.digest, sought):
            found = token
    today = today or datetime.now(UTC).date()
    if found is None or (found.last_day is not None and today > found.last_day):
        return None
    return Caller(found.name, found.role)


def _line(token: Token) -> str:
    return f"{token.name}\t{token.role}\t{token.last_day or '-'}\t{token.digest}\n"


def _token(line: str, where: str) -> Token:
    parts = line.split("\t")
    try:
        name, role, last, known = parts
        last_day = None if last == "-" else date.fromisoformat(last)
        if role not in _ROLES or len(bytes.fromhex(known)) != 32 or not name:
            raise ValueError
    except ValueError as error:
        raise InputError(
            f"{where} is no token; a line is name TAB read or write TAB last day or - TAB SHA-256 of the token"
        ) from error
    return Token(name, cast(Role, role), last_day, known.lower())
