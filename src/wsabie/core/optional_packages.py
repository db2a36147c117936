"""Import of packages that are installed with an extra, such as `pip install 'wsabie[tune]'`."""

from importlib import import_module
from typing import Any

from wsabie.core.errors import InputError


def import_optional(module: str, need: str, extra: str, remedy: str = "") -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
    need : str
        Who needs the package, by its name: "tuning needs Optuna".
    extra : str
        Extra of `pip install` that brings it.
    remedy : str
        Another way out, for the end of the sentence.

    Raises
    ------
    InputError
        The package is not installed, or a library that it needs is missing.

    Examples
    --------
    >>> import_optional("nothing", "drawing needs Nothing", "draw")
    Traceback (most recent call last):
    wsabie.core.errors.InputError: drawing needs Nothing, which is not installed; run: pip install 'wsabie[draw]'
    """
    try:
        return import_module(module)
    except (ImportError, OSError) as error:  # soundfile raises OSError where libsndfile is missing
        raise InputError(f"{need}, which is not installed; run: pip install 'wsabie[{extra}]'{remedy}") from error
