"""Commands of the service: serve, token."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.base.errors import InputError
from wsabie.faces.cli.options import Json

_LONGEST_HOST = 253
_NEEDED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "sqlalchemy")


def serve(
    what: Annotated[Path, typer.Argument(metavar="WHAT", help="A collection, or a model's folder.")],
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's own want --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")] = 8420,
    tokens: Annotated[Path | None, typer.Option(help="File of those who may ask, as `wsabie token` writes it.")] = None,
    name: Annotated[
        list[str] | None, typer.Option(metavar="HOST", help="A name by which it is asked for, behind a proxy.")
    ] = None,
    knowledge: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>",
            help="What knows words, for search, such as /usr/share/wordnet or translations; again for more.",
        ),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1,
    max_megabytes: Annotated[float, typer.Option(min=0.001, help="Of a request, at most.")] = 32,
    max_megapixels: Annotated[float, typer.Option(min=0.001, max=1000, help="Of a picture, at most.")] = 64,
    max_k: Annotated[int, typer.Option(min=1, help="Answers to a question, at most.")] = 1000,
    together: Annotated[int, typer.Option(min=1, help="Requests at a time, of each process; others get 503.")] = 64,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second of one address; 0: any number.")] = 0,
    seconds: Annotated[float, typer.Option(min=0.1, help="For a request, at most.")] = 60,
    connections: Annotated[
        int | None,
        typer.Option(min=1, help="Open connections of each process, at most (default: 1,000, or what files allow)."),
    ] = None,
    client_share: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Share of connections and requests at a time for one token or address."),
    ] = 0.5,
    min_kilobytes: Annotated[
        float, typer.Option(min=0.001, help="A second, of what a client sends or reads; slower ones are ended.")
    ] = 8,
) -> None:
    """Answer questions over HTTP on this machine: annotate, explain, search; described at /docs."""
    if any(find_spec(needed) is None for needed in _NEEDED):
        raise InputError("the service needs FastAPI and others; run: pip install 'wsabie[serve]'")
    from wsabie.catalogue.collection import is_collection
    from wsabie.catalogue.connection import may_write
    from wsabie.faces.cli.common import refuse_uncollected
    from wsabie.faces.cli.terminal import note
    from wsabie.faces.serve.limits import Limits
    from wsabie.faces.serve.running import Service, listening
    from wsabie.faces.serve.running import serve as run
    from wsabie.faces.serve.served import refuse_other

    if not host.isascii() or len(host) > _LONGEST_HOST:
        raise InputError(f"--host {host!r} is no name of a host; give one such as localhost, or an address")
    if not is_collection(what):
        refuse_uncollected(what)
        refuse_other(what)
    limits = Limits(
        body=round(max_megabytes * 2**20),
        pixels=round(max_megapixels * 1e6),
        k=max_k,
        together=together,
        rate=rate,
        burst=max(1, round(2 * rate)),
        seconds=seconds,
        connections=connections,
        share=client_share,
        slowest=min_kilobytes * 1024,
    )
    service = Service(
        str(what),
        host,
        port,
        str(tokens) if tokens else None,
        tuple(name or ()),
        workers,
        limits,
        tuple(map(str, knowledge or ())),
    )
    with listening(service) as found:
        shown = f"[{host}]" if ":" in host else host

        def begin() -> None:
            if is_collection(what) and not may_write(what):
                note(f"{what} is read-only for you: it can be looked at, and nothing can be changed")
            note(f"serving {what} on http://{shown}:{found.getsockname()[1]} (Ctrl-C ends it)")

        run(service, found, begin)


def token(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of tokens; is made if it is missing.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, for the journal.")],
    role: Annotated[Literal["read", "write"], typer.Option(help="What it allows.")] = "read",
    days: Annotated[int | None, typer.Option(min=0, max=36500, help="Until when it holds (default: for ever).")] = None,
    json: Json = False,
) -> None:
    """Make a token for `wsabie serve --tokens FILE`; it is shown once and kept nowhere."""
    from datetime import UTC, datetime, timedelta

    from wsabie.faces.cli.terminal import note, show_json
    from wsabie.faces.serve.tokens import new_token

    last_day = None if days is None else datetime.now(UTC).date() + timedelta(days=days)
    made = new_token(file, name, role, last_day)
    if json:
        show_json(
            {"schema": 1, "token": made, "name": name, "role": role, "last_day": last_day and last_day.isoformat()}
        )
        return
    note(f"a token that lets {name} {role}{f' until {last_day}' if last_day else ''}; it cannot be shown again:")
    typer.echo(made)
