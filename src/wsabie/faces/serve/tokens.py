"""Who may ask: tokens with a role and a last day.

A file of tokens has a line for each: name TAB role TAB last day or "-" TAB SHA-256 of the token in hex. The tokens
themselves are kept nowhere.
"""

import hashlib
import hmac
import secrets
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Literal, NamedTuple, cast

from wsabie.base.errors import InputError
from wsabie.storage.atomic import readable, replacing

Role = Literal["read", "write"]
_ROLES = ("read", "write")
_LARGEST = 1 << 20


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
        It cannot be read, or a line is not as it should be.
    """
    with readable(path):
        content = path.read_bytes()[: _LARGEST + 1]
    if len(content) > _LARGEST:
        raise InputError(f"{path} is too large for a file of tokens; give the one that `wsabie token` wrote")
    found = []
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            found.append(_token(line, f"{path}:{number}"))
    return found


def new_token(path: Path, name: str, role: Role, last_day: date | None = None) -> str:
    """Make a token, add it to the file, and return it: it cannot be shown again.

    Raises
    ------
    InputError
        The name stands in the file already, cannot be one, or the file cannot be read or written.
    """
    if not name or not name.isprintable() or len(name) > 100:
        raise InputError(f"{name[:40]!r} cannot be a name; give 1 to 100 characters that can be seen")
    there = read_tokens(path) if path.exists() else []
    if any(token.name == name for token in there):
        raise InputError(f"{path} has a token of {name!r} already; remove its line first, or choose another name")
    token = secrets.token_urlsafe(32)
    with replacing(path) as draft:
        lines = [*map(_line, there), _line(Token(name, role, last_day, digest(token)))]
        draft.write_text("".join(lines), encoding="utf-8")
        draft.chmod(0o600)
    return token


def caller_of(given: str, tokens: list[Token], today: date | None = None) -> Caller | None:
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
