"""Pictures that ask for much, sent to a service at once: each is answered, and others are answered meanwhile."""

import io
import time
from concurrent.futures import Future, ThreadPoolExecutor

import httpx2 as httpx
from PIL import Image
from tests.faults import states
from tests.faults.attacks.attack import MEMORY_BAR, Fault, Outcome
from tests.faults.lab import Lab
from tests.faults.service import PATIENCE, Service

N = 12
"""Pictures of each kind."""
ROUTES = ("annotate/picture", "search/picture", "explain/picture")
_ANSWERED = 30.0
"""Seconds within which others are answered; much more than it should take."""
_REFUSED = (408, 413, 422, 429, 503, 504)


def upload_pictures(lab: Lab) -> Outcome:
    """Send pictures to every route that takes one."""
    with lab.copy(states.trained_collection) as folder:
        service = Service(folder / "photos", folder / "log", workers=1)
        try:
            faults = [fault for route in ROUTES for fault in _upload(service, route)]
            memory = service.peak_memory()
            service.end()
        finally:
            service.kill_all()
        text = (folder / "log").read_text(errors="replace")
    if "Traceback" in text:
        faults.append(Fault("traceback", f"uploads: {text.strip().splitlines()[-1][:200]}"))
    if memory > MEMORY_BAR:
        faults.append(Fault("memory", f"uploads: the service took {memory / 1e9:.1f} GB"))
    return Outcome(tuple(faults), memory, len(ROUTES) * 2 * N)


def _upload(service: Service, route: str) -> list[Fault]:
    def post(content: bytes) -> int:
        files = {"file": ("a", content)}
        return int(httpx.post(f"{service.address}/api/v1/{route}", files=files, timeout=PATIENCE).status_code)

    faults = []
    with ThreadPoolExecutor(2 * N) as pool:
        answers = [pool.submit(post, content) for content in _pictures()]
        while not all(answer.done() for answer in answers):
            try:
                httpx.get(f"{service.address}/api/v1/health", timeout=_ANSWERED)
            except httpx.TransportError as error:
                faults.append(Fault("unusable", f"{route}: health is not answered ({type(error).__name__})"))
                break
            time.sleep(0.2)
    return faults + [fault for answer in answers for fault in _judge(route, answer)]


def _judge(route: str, answer: "Future[int]") -> list[Fault]:
    if error := answer.exception():
        return [Fault("unusable", f"{route}: an upload is not answered ({type(error).__name__})")]
    status = answer.result()
    return (
        [] if status == 200 or status in _REFUSED else [Fault("unusable", f"{route} answers an upload with {status}")]
    )


def _pictures() -> list[bytes]:
    """WebP in four bands and TIFF in floats, of 63 megapixels each: below the limit on pixels."""
    contents = []
    for mode, kind, settings in (
        ("RGBA", "WEBP", {"quality": 1, "method": 0}),
        ("F", "TIFF", {"compression": "tiff_deflate"}),
    ):
        out = io.BytesIO()
        Image.new(mode, (7900, 7900)).save(out, kind, **settings)
        contents += [out.getvalue() + bytes(number) for number in range(N)]
    return contents
