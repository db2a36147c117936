"""Access tokens with a role and a last day.

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

from wsabie.core.errors import InputError, require
from wsabie.core.input_files import read_stamp
from wsabie.storage.atomic_files import explain_read_errors, lock_folder, replace_file

Role = Literal["read", "write"]
_ROLES = ("read", "write")
_MAX_SIZE = 1 << 20
_CHECK_INTERVAL = 1.0  # seconds

_log = logging.getLogger("wsabie.serve")


class Token(NamedTuple):
    """Entry of a token file; it holds a digest instead of the token itself."""

    name: str
    role: Role
    last_day: date | None
    digest: str


class Caller(NamedTuple):
    """Name and role of the caller of a request."""

    name: str
    role: Role


def hash_token(token: str) -> str:
    """Return the digest of a token, which the file stores.

    Examples
    --------
    >>> hash_token("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode()).hexdigest()


def read_tokens(path: Path) -> list[Token]:
    """Read the tokens of a file.

    Raises
    ------
    InputError
        The file cannot be read, others may write it, or a line is malformed.
    """
    require(path.exists(), f"there is no file {path}; make it: wsabie token {quote(str(path))} NAME")
    with explain_read_errors(path), path.open("rb") as file:
        content, mode = file.read(_MAX_SIZE + 1), os.fstat(file.fileno()).st_mode
    require(not mode & 0o022, f"others may write {path}, and so give themselves a token; run: chmod go-w {path}")
    if len(content) > _MAX_SIZE:
        raise InputError(f"{path} is too large for a file of tokens; give the one that `wsabie token` wrote")
    lines = enumerate(content.decode("utf-8", "replace").splitlines(), 1)
    return [_parse_line(line, f"{path}:{n}") for n, line in lines if line.strip() and not line.startswith("#")]


class TokenFile:
    """Tokens of a file, which is read again when it changes.

    A removed token is refused within a second or so. A file that can no longer be read has no tokens.

    Raises
    ------
    InputError
        The file cannot be used at the start.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._checked_at, self._stamp = time.monotonic(), read_stamp(path)
        self._tokens = read_tokens(path)

    def __iter__(self) -> Iterator[Token]:
        if time.monotonic() - self._checked_at > _CHECK_INTERVAL:
            self._checked_at, stamp = time.monotonic(), read_stamp(self.path)
            if stamp != self._stamp:
                self._stamp, self._tokens = stamp, self._reload()
        return iter(self._tokens)

    def _reload(self) -> list[Token]:
        try:
            return read_tokens(self.path)
        except InputError as error:
            _log.error("all requests are refused: %s", error)
            return []


def create_token(path: Path, name: str, role: Role, last_day: date | None = None) -> str:
    """Make a token, add it to the file, and return it: it cannot be shown again.

    Raises
    ------
    InputError
        The name stands in the file already, cannot be one, or the file cannot be read or written.
    """
    if not name or not name.isprintable() or len(name) > 100:
        raise InputError(f"{name[:40]!r} cannot be a name; give 1 to 100 characters that can be seen")
    token = secrets.token_urlsafe(32)
    with lock_folder(path.parent, wait=True):  # a token that another command adds meanwhile would be lost
        tokens = read_tokens(path) if path.exists() else []
        if any(existing.name == name for existing in tokens):
            raise InputError(f"{path} has a token of {name!r} already; remove its line first, or choose another name")
        with replace_file(path) as draft:
            lines = [*map(_format_line, tokens), _format_line(Token(name, role, last_day, hash_token(token)))]
            draft.chmod(0o600)
            draft.write_text("".join(lines), encoding="utf-8")
    return token


def find_caller(token_text: str, tokens: Iterable[Token], today: date | None = None) -> Caller | None:
    """Return the caller with this token; None if it is unknown or its last day is over."""
    digest, match = hash_token(token_text), None
    for token in tokens:  # compares with all tokens, so that the time tells nothing
        if hmac.compare_digest(token.digest, digest):
            match = token
    today = today or datetime.now(UTC).date()
    if match is None or (match.last_day is not None and today > match.last_day):
        return None
    return Caller(match.name, match.role)


def _format_line(token: Token) -> str:
    return f"{token.name}\t{token.role}\t{token.last_day or '-'}\t{token.digest}\n"


def _parse_line(line: str, where: str) -> Token:
    parts = line.split("\t")
    try:
        name, role, day_text, digest = parts
        last_day = None if day_text == "-" else date.fromisoformat(day_text)
        if role not in _ROLES or len(bytes.fromhex(digest)) != 32 or not name:
            raise ValueError
    except ValueError as error:
        form = "name TAB read or write TAB last day or - TAB SHA-256 of the token"
        raise InputError(f"{where} is not a token; a line is {form}") from error
    return Token(name, cast(Role, role), last_day, digest.lower())
