"""`wsabie serve` and `wsabie token`: the service."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from wsabie.cli.command import command, options
from wsabie.cli.inputs import refuse_collection_folder
from wsabie.cli.options import Knowledge, OutputOptions
from wsabie.cli.output import print_note, show_json
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.server.request_limits import ServiceLimits

_MAX_HOST = 253
_REQUIRED_MODULES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "sqlalchemy")


@options
class LimitOptions:
    """Limits of requests and connections."""

    panel: ClassVar = "Limits"

    max_megabytes: Annotated[float, typer.Option(min=0.001, help="Of a request, at most.")] = 32
    max_megapixels: Annotated[float, typer.Option(min=0.001, max=1000, help="Of a picture, at most.")] = 64
    max_k: Annotated[int, typer.Option(min=1, help="Answers to a question, at most.")] = 1000
    max_concurrent: Annotated[int, typer.Option(min=1, help="Requests at a time, of each process; others get 503.")] = (
        64
    )
    max_rate: Annotated[float, typer.Option(min=0, help="Requests a second of one address; 0: any number.")] = 0
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request, at most.")] = 60
    max_connections: Annotated[
        int | None, typer.Option(min=1, help="Open connections of each process (default: 1,000, or what files allow).")
    ] = None
    client_share: Annotated[
        float,
        typer.Option(min=0.01, max=1, help="Share of connections and requests at a time for one token or address."),
    ] = 0.5
    min_kilobytes: Annotated[
        float, typer.Option(min=0.001, help="A second, of what a client sends or reads; slower ones are ended.")
    ] = 8

    def make_limits(self) -> "ServiceLimits":
        """Make the limits of the service."""
        from wsabie.server.request_limits import ServiceLimits

        return ServiceLimits(
            body=round(self.max_megabytes * 2**20),
            pixels=round(self.max_megapixels * 1e6),
            k=self.max_k,
            max_concurrent=self.max_concurrent,
            rate=self.max_rate,
            burst=max(1, round(2 * self.max_rate)),
            seconds=self.timeout,
            connections=self.max_connections,
            share=self.client_share,
            min_rate=self.min_kilobytes * 1024,
        )


@options
class ServeOptions:
    """Options of `wsabie serve`."""

    folder: Annotated[Path, typer.Argument(metavar="WHAT", help="A collection, or a model's folder.")]
    host: Annotated[str, typer.Option(help="Address to listen on; others than this machine's own want --tokens.")] = (
        "127.0.0.1"
    )
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0: one that is free.")] = 8420
    tokens: Annotated[Path | None, typer.Option(help="File of those who may ask, as `wsabie token` writes it.")] = None
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="A name of the service, such as that of a proxy; several are allowed."),
    ] = None
    knowledge: Knowledge = None
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that answer.")] = 1
    limits: LimitOptions = LimitOptions()


@command("serve photos/", "serve photos/ --host 0.0.0.0 --tokens tokens.json --allowed-host photos.example.org")
def serve(options: ServeOptions) -> None:
    """Answer questions over HTTP on this machine: annotate, explain, search; described at /docs."""
    if any(find_spec(module) is None for module in _REQUIRED_MODULES):
        raise InputError("the service needs FastAPI and others; run: pip install 'wsabie[serve]'")
    from wsabie.collection.folder.collection import is_collection
    from wsabie.collection.folder.connection import can_write
    from wsabie.server.launcher import ServiceOptions, open_socket, run_service
    from wsabie.server.model_holder import refuse_non_model

    folder, host = options.folder, options.host
    if not host.isascii() or len(host) > _MAX_HOST:
        raise InputError(f"--host {host!r} is no name of a host; give one such as localhost, or an address")
    if not is_collection(folder):
        refuse_collection_folder(folder)
        refuse_non_model(folder)
    service = ServiceOptions(
        str(folder),
        host,
        options.port,
        str(options.tokens) if options.tokens else None,
        tuple(options.allowed_host or ()),
        options.workers,
        options.limits.make_limits(),
        tuple(map(str, options.knowledge or ())),
    )
    with open_socket(service) as listener:
        address = f"[{host}]" if ":" in host else host

        def begin() -> None:
            if is_collection(folder) and not can_write(folder):
                print_note(f"{folder} is read-only for you: it can be looked at, and nothing can be changed")
            print_note(f"serving {folder} on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends it)")

        run_service(service, listener, begin)


@options
class TokenOptions:
    """Options of `wsabie token`."""

    file: Annotated[Path, typer.Argument(metavar="FILE", help="File of tokens; is made if it is missing.")]
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, for the journal.")]
    role: Annotated[Literal["read", "write"], typer.Option(help="What it allows.")] = "read"
    days: Annotated[int | None, typer.Option(min=0, max=36500, help="Days that it holds (default: for ever).")] = None
    output: OutputOptions = OutputOptions()


@command("token tokens.json eve", "token tokens.json eve --role write --days 90")
def token(options: TokenOptions) -> None:
    """Make a token for `wsabie serve --tokens FILE`; it is shown once and kept nowhere."""
    from datetime import UTC, datetime, timedelta

    from wsabie.server.tokens import create_token

    name, role = options.name, options.role
    last_day = None if options.days is None else datetime.now(UTC).date() + timedelta(days=options.days)
    secret = create_token(options.file, name, role, last_day)
    if options.output.json:
        show_json(
            {"schema": 1, "token": secret, "name": name, "role": role, "last_day": last_day and last_day.isoformat()}
        )
        return
    print_note(f"a token that lets {name} {role}{f' until {last_day}' if last_day else ''}; it cannot be shown again:")
    typer.echo(secret)
