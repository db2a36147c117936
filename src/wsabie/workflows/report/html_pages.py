"""Pages from Jinja2 templates: one file each, without network or script; text from data is always escaped."""

import base64
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree.ElementTree import Element

from wsabie import __version__
from wsabie.core.errors import InputError
from wsabie.workflows.charts.svg_charts import draw_legend_sample, format_svg, replace_forbidden
from wsabie.workflows.compare.comparison import TextTable
from wsabie.workflows.report import number_format
from wsabie.workflows.report.report_input import EncodedImage

if TYPE_CHECKING:
    from jinja2 import Environment

MIMES = ("image/webp", "image/png", "image/jpeg", "image/gif")


class PageChart(NamedTuple):
    """A drawing of a page; the template adds heading and caption.

    Attributes
    ----------
    drawing : Element
    legend : sequence of (str, int)
        Name and style of each series; empty for one series.
    has_bars : bool
        The legend shows bars instead of lines.
    table : TextTable or None
        The figures of the chart, which open on demand.
    """

    drawing: Element
    legend: Sequence[tuple[str, int]] = ()
    has_bars: bool = False
    table: TextTable | None = None


def render_page(template: str, **values: Any) -> str:
    """Render a template of this package as a complete HTML file.

    Raises
    ------
    InputError
        An image of a type that some browsers do not show, or that could hold a script.
    """
    return replace_forbidden(load_environment().get_template(template).render(values))


@cache
def load_environment() -> "Environment":
    """Return the templates' environment.

    Examples
    --------
    >>> load_environment().from_string("<p>{{ text }}</p>").render(text="a < b")
    '<p>a &lt; b</p>'
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("wsabie.workflows.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        metric=number_format.format_metric,
        difference=number_format.format_difference,
        duration=number_format.format_duration,
        milliseconds=number_format.format_milliseconds,
        bytes=number_format.format_bytes,
        explain=number_format.explain_metric,
        data_url=encode_image,
        svg=lambda element: Markup(format_svg(element)),  # noqa: S704 the elements escape their text
    )
    environment.globals.update(version=__version__, draw_legend_sample=draw_legend_sample)
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
