"""`wsabie token`."""

from pathlib import Path
from typing import Literal

import typer

from wsabie.cli.framework import Report, argument, command, option
from wsabie.cli.output import print_note
from wsabie.cli.shared_options import OutputOptions


class TokenOptions(OutputOptions):
    """Options of `wsabie token`."""

    file: Path = argument("File of tokens; it is created if it is missing.", metavar="FILE")
    name: str = argument("Name of its owner, for the journal.", metavar="NAME")
    role: Literal["read", "write"] = option("What its owner may do.", "read")
    days: int | None = option("Days until it expires (default: never).", min=0, max=36500)


@command("token tokens.json eve", "token tokens.json eve --role write --days 90")
def token(options: TokenOptions) -> Report:
    """Make a token for `wsabie serve --tokens FILE`.

    It is shown once and kept nowhere.
    """
    from datetime import UTC, datetime, timedelta

    from wsabie.server.tokens import create_token

    name, role = options.name, options.role
    last_day = None if options.days is None else datetime.now(UTC).date() + timedelta(days=options.days)
    secret = create_token(options.file, name, role, last_day)
    yield {"token": secret, "name": name, "role": role, "last_day": last_day and last_day.isoformat()}
    print_note(f"a token that lets {name} {role}{f' until {last_day}' if last_day else ''}; it cannot be shown again:")
    typer.echo(secret)
