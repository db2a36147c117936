"""Metrics of the service for Prometheus.

Several processes write their metrics into files of one folder, which prometheus_client looks for when it is
imported. The process that answers /metrics adds up all of them.
"""

import os
import re
import time
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that names the folder of these files."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Metrics:
    """Counts and times of requests, by route, method and status."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        names = ("route", "method", "status")
        self.requests = Counter("wsabie_requests", "Requests answered", names, registry=self.registry)
        self.seconds = Histogram(
            "wsabie_request_seconds", "Time to answer", ("route",), buckets=_SECONDS, registry=self.registry
        )
        self.running = Gauge(
            "wsabie_requests_running", "Requests being worked on", registry=self.registry, multiprocess_mode="livesum"
        )

    def page(self) -> tuple[bytes, str]:
        """Return the metrics page of all processes of the service, and its media type."""
        folder, registry = os.environ.get(FOLDER_VARIABLE), self.registry
        if folder is not None:
            _remove_stale_gauges(Path(folder))
            registry = CollectorRegistry()
            MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        return generate_latest(registry), CONTENT_TYPE_LATEST


def _remove_stale_gauges(folder: Path) -> None:
    """Remove the gauges of processes that were killed; their counters stay."""
    for path in folder.glob("gauge_live*.db"):
        process_id = re.search(r"_(\d+)\.db$", path.name)
        if process_id is not None and not Path("/proc", process_id[1]).exists():
            path.unlink(missing_ok=True)


class MetricsMiddleware:
    """Middleware that counts and times requests."""

    def __init__(self, app: ASGIApp, figures: Metrics) -> None:
        self.app, self.metrics = app, figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        status, start = 500, time.perf_counter()

        async def send_and_note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.metrics.running.inc()
        try:
            await self.app(scope, receive, send_and_note_status)
        finally:
            self.metrics.running.dec()
            route = getattr(scope.get("route"), "path", "other")  # never the address itself, which has unlimited values
            method = scope["method"] if route != "other" and scope["method"] in _METHODS else "any"  # likewise
            self.metrics.requests.labels(route, method, str(status)).inc()
            self.metrics.seconds.labels(route).observe(time.perf_counter() - start)
