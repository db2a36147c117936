"""Pages from Jinja2 templates: one file each, without network or script; text is always escaped."""

import base64
import re
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from wsabie.core.errors import InputError
from wsabie.core.version import VERSION
from wsabie.workflows.charts import svg_charts
from wsabie.workflows.report import number_format

if TYPE_CHECKING:
    from jinja2 import Environment

MIMES = ("image/webp", "image/png", "image/jpeg", "image/gif")
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


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
    for name in ("metric", "difference", "duration", "milliseconds", "bytes"):
        environment.filters[name] = getattr(number_format, f"format_{name}")
    environment.filters.update(
        explain=number_format.explain_metric,
        data_url=encode_image,
        points=svg_charts.format_points,
        tick=svg_charts.format_tick,
    )
    environment.globals.update(version=VERSION, format_range=number_format.format_range, charts=svg_charts)
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
