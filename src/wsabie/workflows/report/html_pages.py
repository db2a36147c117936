"""Pages from Jinja2 templates, one file each without network or script, and the numbers in them."""

import base64
import math
import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.version import VERSION
from wsabie.workflows.charts import svg_charts

if TYPE_CHECKING:
    from jinja2 import Environment

MIMES = ("image/webp", "image/png", "image/jpeg", "image/gif")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
EXPLANATIONS = {
    "MAP": "mean average precision: 1 when every true label stands before every other label",
    "AUC": "how often a true label stands before another label; 0.5 is chance",
    "MRR": "1 / rank of the first true label, on average",
    "p@1": "share of first suggestions that are right",
    "p": "share of the first {k} suggestions that are right",
    "psib": "share of the first {k} suggestions that are right or siblings of a right one",
    "recall": "share of the true labels that are among the first {k} suggestions",
}


class EncodedImage(NamedTuple):
    """An encoded image.

    Attributes
    ----------
    content : bytes
    mime : str
        "image/webp", "image/png", "image/jpeg" or "image/gif".
    """

    content: bytes
    mime: str = "image/webp"


def render_page(template: str, **values: Any) -> str:
    """Render a template of this package as a complete file of HTML or SVG.

    Raises
    ------
    InputError
        An image of a type that some browsers do not show, or that could hold a script.

    Examples
    --------
    >>> from wsabie.workflows.charts.svg_charts import ChartAxis, ChartSeries, LineChart
    >>> chart = LineChart("Loss < 1", [ChartSeries("loss", [1, 2], [0.9, 0.4])], ChartAxis("epoch"), ChartAxis("loss"))
    >>> drawing = render_page("charts.svg", chart=chart)
    >>> drawing.count("<polyline"), "<title>Loss &lt; 1</title>" in drawing
    (1, True)
    """
    return replace_forbidden(load_environment().get_template(template).render(values))


def replace_forbidden(text: str) -> str:
    """Replace characters that HTML and XML forbid by U+FFFD.

    Examples
    --------
    >>> replace_forbidden("a\\x00b")
    'a�b'
    """
    return _FORBIDDEN.sub("\ufffd", text)


@cache
def load_environment() -> "Environment":
    """Return the templates' environment.

    Examples
    --------
    >>> load_environment().from_string("<p>{{ text }}</p>").render(text="a < b")
    '<p>a &lt; b</p>'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("wsabie.workflows.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (format_metric, format_difference, format_duration, format_milliseconds):
        environment.filters[function.__name__.removeprefix("format_")] = function
    environment.filters.update(
        explain=explain_metric, data_url=encode_image, points=svg_charts.format_points, tick=svg_charts.format_tick
    )
    environment.globals.update(version=VERSION, format_range=format_range, charts=svg_charts)
    return environment


def encode_image(image: EncodedImage) -> str:
    """Return an image as the address of an `img` element.

    Raises
    ------
    InputError
        A type that some browsers do not show, or that could hold a script.
    """
    if image.mime not in MIMES:
        raise InputError(f"a picture of type {image.mime!r} cannot go into a report; use one of {', '.join(MIMES)}")
    return f"data:{image.mime};base64,{base64.b64encode(image.content).decode('ascii')}"


def explain_metric(metric: str) -> str:
    """Explain a metric in words.

    Examples
    --------
    >>> explain_metric("p@10")
    'share of the first 10 suggestions that are right'
    """
    name, _, k = metric.partition("@")
    return EXPLANATIONS.get(metric, EXPLANATIONS.get(name, metric)).format(k=k)


def format_metric(value: float, digits: int = 3) -> str:
    """Format a metric, with a real minus; a dash if it is not defined."""
    return "–" if not math.isfinite(value) else f"{value:z.{digits}f}".replace("-", "−")


def format_difference(value: float, digits: int = 3) -> str:
    """Format a difference with its sign (a real minus); what rounds to 0 has a plus.

    Examples
    --------
    >>> format_difference(-0.05), format_difference(-0.0001)
    ('−0.050', '+0.000')
    """
    return format_metric(value, digits) if not math.isfinite(value) else f"{value:+z.{digits}f}".replace("-", "−")


def format_duration(seconds: float) -> str:
    """Format seconds in everyday units.

    Examples
    --------
    >>> format_duration(0.004), format_duration(7.25), format_duration(137), format_duration(7350)
    ('< 0.1 s', '7.2 s', '2 min 17 s', '2 h 2 min')
    """
    if seconds < 0.05:
        return "< 0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, seconds_left = divmod(round(seconds), 60)
    return f"{minutes} min {seconds_left} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def format_milliseconds(value: float) -> str:
    """Format a short time.

    Examples
    --------
    >>> format_milliseconds(0.482), format_milliseconds(0.001)
    ('0.48 ms', '< 0.01 ms')
    """
    return "< 0.01 ms" if value < 0.005 else f"{value:.2f} ms"


def format_range(low: int, high: int) -> str:
    """Format a range of whole numbers.

    Examples
    --------
    >>> format_range(1, 1), format_range(4, 7)
    ('1', '4–7')
    """
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def format_bands(lows: Sequence[int], highs: Sequence[int]) -> list[str]:
    """Format adjoining ranges, short enough to stand below bars.

    Examples
    --------
    >>> format_bands([1, 2, 4, 16, 1024], [1, 3, 15, 1023, 4000])
    ['1', '2–3', '4–15', '16+', '1k+']
    """
    names = []
    for low, high in zip(lows, highs, strict=True):
        from_low = f"{low // 1000}k+" if low >= 1000 else f"{low}+"
        names.append(format_range(low, high) if high < 16 else from_low)
    return names
