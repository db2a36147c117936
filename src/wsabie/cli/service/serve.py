"""`wsabie serve`."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from wsabie.cli.framework import Options, Settings, argument, command, option
from wsabie.cli.inputs import refuse_collection_folder
from wsabie.cli.output import print_note
from wsabie.cli.shared_options import Knowledge
from wsabie.core.errors import InputError

if TYPE_CHECKING:
    from wsabie.server.limits.request_limits import ServiceLimits

_MAX_HOST = 253
_REQUIRED_MODULES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client", "sqlalchemy")


class LimitOptions(Options, panel="Limits"):
    """Limits of requests and connections."""

    max_megabytes: float = option("Largest request, in MB.", 32, min=0.001)
    max_megapixels: float = option("Largest picture, in megapixels.", 64, min=0.001, max=1000)
    k: int = option("Most results of a request.", 1000, flag="--max-k", min=1)
    max_concurrent: int = option("Most requests at a time in each process; others get 503.", 64, min=1)
    rate: float = option("Most requests a second from one address; 0: any number.", 0, flag="--max-rate", min=0)
    seconds: float = option("Longest time of a request, in seconds.", 60, flag="--timeout", min=0.1)
    connections: int | None = option(
        "Open connections of each process (default: 1,000, or what files allow).", flag="--max-connections", min=1
    )
    share: float = option(
        "Share of connections and requests at a time for one token or address.",
        0.5,
        flag="--client-share",
        min=0.01,
        max=1,
    )
    min_kilobytes: float = option("Least kB a second of a client; slower requests are ended.", 8, min=0.001)

    def make_limits(self) -> "ServiceLimits":
        """Make the limits of the service."""
        from wsabie.server.limits.request_limits import ServiceLimits

        body, pixels = round(self.max_megabytes * 2**20), round(self.max_megapixels * 1e6)
        rates: Settings = {"burst": max(1, round(2 * self.rate)), "min_rate": self.min_kilobytes * 1024}
        limits = self.pick("k", "max_concurrent", "rate", "seconds", "connections", "share")
        return ServiceLimits(body, pixels, **rates, **limits)


class ServeOptions(Options):
    """Options of `wsabie serve`."""

    folder: Path = argument("A collection, or a model's folder.", metavar="WHAT")
    host: str = option("Address to listen on; other addresses than this machine's own need --tokens.", "127.0.0.1")
    port: int = option("Port; 0 chooses a free one.", 8420, min=0, max=65535)
    tokens: Path | None = option("File of tokens, as `wsabie token` writes it; only their owners may use the service.")
    allowed_host: list[str] | None = option("Name of the service, such as that of a proxy.", metavar="HOST")
    knowledge: Knowledge = None
    workers: int = option("Number of processes.", 1, min=1, max=64)
    limits: LimitOptions


@command("serve photos/", "serve photos/ --host 0.0.0.0 --tokens tokens.json --allowed-host photos.example.org")
def serve(options: ServeOptions) -> None:
    """Serve a collection or a model over HTTP on this machine.

    It annotates, explains and searches; a collection has web pages, and /docs describes every address.
    """
    if any(find_spec(module) is None for module in _REQUIRED_MODULES):
        raise InputError("the service needs FastAPI and others; run: pip install 'wsabie[serve]'")
    from wsabie.collection.folder.collection_file import can_write, is_collection
    from wsabie.server.launcher import ServiceOptions, open_socket, run_service
    from wsabie.server.model_holder import refuse_non_model

    folder, host = options.folder, options.host
    if not host.isascii() or len(host) > _MAX_HOST:
        raise InputError(f"--host {host!r} is not the name of a host; give one such as localhost, or an address")
    if not is_collection(folder):
        refuse_collection_folder(folder)
        refuse_non_model(folder)
    tokens, knowledge = options.tokens and str(options.tokens), tuple(map(str, options.knowledge or ()))
    access: Settings = {"tokens": tokens, "names": tuple(options.allowed_host or ()), "knowledge": knowledge}
    limits = options.limits.make_limits()
    service = ServiceOptions(str(folder), **options.pick("host", "port", "workers"), **access, limits=limits)
    with open_socket(service) as listener:
        address = f"[{host}]" if ":" in host else host

        def begin() -> None:
            if is_collection(folder) and not can_write(folder):
                print_note(f"{folder} is read-only for you: you can look at everything, and change nothing")
            print_note(f"serving {folder} on http://{address}:{listener.getsockname()[1]} (Ctrl-C ends it)")

        run_service(service, listener, begin)
