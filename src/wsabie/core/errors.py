"""Errors meant for the user: one sentence that says what is wrong, where, and what to do next."""


class WsabieError(Exception):
    """Base of every error that is the input's fault and not the program's.

    The command line prints it as one line and exits with 1; it is never shown as a traceback.

    Parameters
    ----------
    *message : object
        One sentence.
    web_message : str
        The sentence for people with a browser, where the other names a command or a folder of the service's machine.
    """

    def __init__(self, *message: object, web_message: str = "") -> None:
        super().__init__(*(make_printable(part) if isinstance(part, str) else part for part in message))
        self.web_message = web_message


def make_printable(text: str) -> str:
    """Return text that can be written as UTF-8: names of files need not be, and messages show them."""
    return text.encode("utf-8", "backslashreplace").decode()


def bracket_detail(error: BaseException) -> str:
    """Return the text of an error in brackets behind a blank; nothing for a bare MemoryError.

    Examples
    --------
    >>> bracket_detail(MemoryError("64 GiB")), bracket_detail(MemoryError())
    (' (64 GiB)', '')
    """
    text = str(error).strip()
    return f" ({text})" if text else ""


class InputError(WsabieError, ValueError):
    """Data or parameters that cannot be used.

    Parameters
    ----------
    *message, web_message
        See `WsabieError`.
    """


def require(condition: bool, sentence: str) -> None:
    """Raise InputError with `sentence` unless `condition` holds."""
    if not condition:
        raise InputError(sentence)


class InputTypeError(InputError, TypeError):
    """Data of an unusable type, such as a dictionary among numbers."""


class MissingLabelsError(InputError):
    """Items of which none has a label; `labels_from="none"` reads them."""


class UnsuitableModelError(InputError):
    """Model that does not suit these data; a comparison continues without it."""


class NotCalibratedError(InputError, AttributeError):
    """Probabilities requested from a model fitted without validation rows; `hasattr` is then False."""


class NotFoundError(InputError):
    """Request for an object by a number that does not exist."""


class BusyError(InputError):
    """Resource that another process holds for too long; the caller may try again."""


class CollectionError(InputError):
    """Collection database that is damaged, missing or out of reach; no other request helps."""


class ModelFolderError(WsabieError):
    """Model folder that is missing, damaged, or of another version."""


class DivergenceError(WsabieError, FloatingPointError):
    """Training produced non-finite or exploding parameters."""


class UnknownLabelError(WsabieError, KeyError):
    """Label that the model has never seen; the message names the closest ones."""

    def __str__(self) -> str:  # KeyError would print the repr of the sentence
        return str(self.args[0])


class UnreadableItemError(Exception):
    """Error of an item that cannot be used, with a reason and a detail for the list of rejects."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail[:200]
