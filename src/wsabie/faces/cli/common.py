"""What several commands do: open data, settle the list of skipped input, choose where work runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsabie.base.errors import InputError
from wsabie.base.executor import Executor, Processes, Serial
from wsabie.base.machine import available_cores
from wsabie.faces.cli.terminal import TerminalProgress, note
from wsabie.sources.records import Source
from wsabie.storage.rejects import Rejects

if TYPE_CHECKING:
    from wsabie.sources.align import Aligned


def opened(path: Path, rejects: Rejects, labels_from: str = "auto") -> Source:
    """The source at a path, refusing an empty one."""
    from wsabie.sources.open import open_source

    source = open_source(path, labels_from=labels_from, rejects=rejects, progress=TerminalProgress())
    if not len(source):
        raise InputError(f"{path} holds nothing to use{_because(rejects)}; look at the list that --rejects FILE writes")
    return source


def _because(rejects: Rejects) -> str:
    return f" ({rejects.summary()})" if len(rejects) else ""


def executor(threads: int | None) -> Executor:
    """Processes for picture work; this process when one core is wanted."""
    n = threads or available_cores()
    return Serial() if n == 1 else Processes(n)


def settle(rejects: Rejects, file: Path | None) -> None:
    """Tell how many inputs were skipped, and write the list where asked."""
    if file is not None:
        rejects.write(file)
    if len(rejects):
        note(rejects.summary() + (f" (listed in {file})" if file else "; --rejects FILE lists them"))


def loaded(path: Path, threads: int | None = None) -> Any:
    """The annotator in a model folder; a bare estimator is wrapped."""
    from wsabie.models.annotator import Annotator
    from wsabie.models.registry import load

    model = load(path)
    annotator = model if isinstance(model, Annotator) else Annotator(model)
    annotator.model.threads = threads
    return annotator


def tell_unknown(aligned: "Aligned", where: object) -> None:
    """Say which labels of a collection had no place among those of the training data."""
    if aligned.unknown_labels:
        shown = ", ".join(repr(name) for name in aligned.unknown_labels[:3])
        note(
            f"{len(aligned.unknown_labels):,} labels of {where} ({aligned.unknown_pairs:,} pairs) are unknown to the "
            f"model, such as {shown}"
        )
