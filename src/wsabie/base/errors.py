"""Errors meant for the user: one sentence that says what is wrong, where, and what to do next."""


class WsabieError(Exception):
    """Base of every error that is the input's fault and not the program's.

    The command line prints it as one line and exits with 1; it is never shown as a traceback.

    Parameters
    ----------
    *told : object
        One sentence.
    served : str
        The sentence for people with a browser, where the other names a command or a folder of the service's machine.
    """

    def __init__(self, *told: object, served: str = "") -> None:
        super().__init__(*told)
        self.served = served


def bracket_detail(error: BaseException) -> str:
    """Return the text of an error in brackets behind a blank; nothing where it has none, as a bare MemoryError.

    Examples
    --------
    >>> bracket_detail(MemoryError("64 GiB")), bracket_detail(MemoryError())
    (' (64 GiB)', '')
    """
    text = str(error).strip()
    return f" ({text})" if text else ""


class InputError(WsabieError, ValueError):
    """Data or parameters that cannot be used as given."""


class InputTypeError(InputError, TypeError):
    """Data that is of no usable kind, such as a dictionary among numbers."""


class UnsuitableError(InputError):
    """A model that these data do not suit, though others may: a comparison goes on without it."""


class UncalibratedError(InputError, AttributeError):
    """Probabilities of a model that was fitted without validation rows; `hasattr` then says that it has none."""


class MissingError(InputError):
    """Something that was named by its number and is not there."""


class BusyError(InputError):
    """Somebody else uses what is needed for too long; the same may be tried again."""


class CatalogueError(InputError):
    """A catalogue that is damaged, gone or out of reach, which no other request helps."""


class ModelFolderError(WsabieError):
    """A model folder that is missing, damaged, or of another version."""


class DivergenceError(WsabieError, FloatingPointError):
    """Training produced non-finite or exploding parameters."""


class UnknownLabelError(WsabieError, KeyError):
    """A label that the model has never seen; the message names the closest ones."""

    def __str__(self) -> str:  # KeyError would print the repr of the sentence
        return str(self.args[0])
