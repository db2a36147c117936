"""Commands of the service: serve, token."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from wsabie.cli.inputs.options import Json
from wsabie.core.errors import InputError

_MAX_HOST = 253
_REQUIRED_MODULES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "sqlalchemy")


Folder = Annotated[Path, typer.Argument(metavar="WHAT", help="A collection, or a model's folder.")]
Host = Annotated[str, typer.Option(help="Address to listen on; others than this machine's own want --tokens.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")]
Tokens = Annotated[Path | None, typer.Option(help="File of those who may ask, as `wsabie token` writes it.")]
Name = Annotated[
    list[str] | None, typer.Option(metavar="HOST", help="A name by which it is asked for, behind a proxy.")
]
Knowledge = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="<path>",
        help="What knows words, for search, such as /usr/share/wordnet or translations; again for more.",
    ),
]
Workers = Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")]
MaxMegabytes = Annotated[float, typer.Option(min=0.001, help="Of a request, at most.")]
MaxMegapixels = Annotated[float, typer.Option(min=0.001, max=1000, help="Of a picture, at most.")]
MaxK = Annotated[int, typer.Option(min=1, help="Answers to a question, at most.")]
MaxConcurrent = Annotated[
    int, typer.Option("--together", min=1, help="Requests at a time, of each process; others get 503.")
]
Rate = Annotated[float, typer.Option(min=0, help="Requests a second of one address; 0: any number.")]
Seconds = Annotated[float, typer.Option(min=0.1, help="For a request, at most.")]
Connections = Annotated[
    int | None,
    typer.Option(min=1, help="Open connections of each process, at most (default: 1,000, or what files allow)."),
]
ClientShare = Annotated[
    float,
    typer.Option(min=0.01, max=1, help="Share of connections and requests at a time for one token or address."),
]
MinKilobytes = Annotated[
    float, typer.Option(min=0.001, help="A second, of what a client sends or reads; slower ones are ended.")
]


def serve(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Port = 8420,
    tokens: Tokens = None,
    name: Name = None,
    knowledge: Knowledge = None,
    workers: Workers = 1,
    max_megabytes: MaxMegabytes = 32,
    max_megapixels: MaxMegapixels = 64,
    max_k: MaxK = 1000,
    max_concurrent: MaxConcurrent = 64,
    rate: Rate = 0,
    seconds: Seconds = 60,
    connections: Connections = None,
    client_share: ClientShare = 0.5,
    min_kilobytes: MinKilobytes = 8,
) -> None:
    """Answer questions over HTTP on this machine: annotate, explain, search; described at /docs."""
    if any(find_spec(module) is None for module in _REQUIRED_MODULES):
        raise InputError("the service needs FastAPI and others; run: pip install 'wsabie[serve]'")
    from wsabie.cli.inputs.command_inputs import refuse_collection_folder
    from wsabie.cli.terminal.output import print_note
    from wsabie.collection.folder.collection import is_collection
    from wsabie.collection.folder.connection import can_write
    from wsabie.server.launcher import ServiceOptions, open_socket
    from wsabie.server.launcher import run_service as run
    from wsabie.server.limits.request_limits import ServiceLimits
    from wsabie.server.model_holder import refuse_non_model

    if not host.isascii() or len(host) > _MAX_HOST:
        raise InputError(f"--host {host!r} is no name of a host; give one such as localhost, or an address")
    if not is_collection(folder):
        refuse_collection_folder(folder)
        refuse_non_model(folder)
    limits = ServiceLimits(
        body=round(max_megabytes * 2**20),
        pixels=round(max_megapixels * 1e6),
        k=max_k,
        max_concurrent=max_concurrent,
        rate=rate,
        burst=max(1, round(2 * rate)),
        seconds=seconds,
        connections=connections,
        share=client_share,
        min_rate=min_kilobytes * 1024,
    )
    service = ServiceOptions(
        str(folder),
        host,
        port,
        str(tokens) if tokens else None,
        tuple(name or ()),
        workers,
        limits,
        tuple(map(str, knowledge or ())),
    )
    with open_socket(service) as listener:
        address = f"[{host}]" if ":" in host else host

        def begin() -> None:
            if is_collection(folder) and not can_write(folder):
                print_note(f"{folder} is read-only for you: it can be looked at, and nothing can be changed")
            print_note(f"serving {folder} on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends it)")

        run(service, listener, begin)


def token(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of tokens; is made if it is missing.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, for the journal.")],
    role: Annotated[Literal["read", "write"], typer.Option(help="What it allows.")] = "read",
    days: Annotated[int | None, typer.Option(min=0, max=36500, help="Until when it holds (default: for ever).")] = None,
    json: Json = False,
) -> None:
    """Make a token for `wsabie serve --tokens FILE`; it is shown once and kept nowhere."""
    from datetime import UTC, datetime, timedelta

    from wsabie.cli.terminal.output import print_note, show_json
    from wsabie.server.auth.tokens import create_token

    last_day = None if days is None else datetime.now(UTC).date() + timedelta(days=days)
    secret = create_token(file, name, role, last_day)
    if json:
        show_json(
            {"schema": 1, "token": secret, "name": name, "role": role, "last_day": last_day and last_day.isoformat()}
        )
        return
    print_note(f"a token that lets {name} {role}{f' until {last_day}' if last_day else ''}; it cannot be shown again:")
    typer.echo(secret)
