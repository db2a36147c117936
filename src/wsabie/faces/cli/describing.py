"""`wsabie features`."""

import time
from pathlib import Path
from typing import Any

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import executor, opened, settle
from wsabie.faces.cli.terminal import TerminalProgress, out, show_json
from wsabie.sources.records import Rows
from wsabie.storage.atomic import refuse_unwritable
from wsabie.storage.rejects import Rejects


def features_command(
    kind: str,
    src: Path,
    out_file: Path,
    given: dict[str, Any],
    seed: int,
    dictionary: Path | None,
    augment: int,
    threads: int | None,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Learn or load a dictionary, describe every picture, write Parquet; `given` are the dictionary's options."""
    if kind != "images":
        raise InputError(f"features of kind {kind!r} are not there yet; this version describes: images")
    from wsabie.features.extract import extract
    from wsabie.features.visual_terms import VisualTerms

    refuse_unwritable(rejects_file, out_file)
    rejects, progress, run = Rejects(strict=strict), TerminalProgress(), executor(threads)
    source = opened(src, rejects)
    if isinstance(source, Rows):
        raise InputError(f"{src} holds rows of features already; give a folder of pictures or Parquet with pictures")
    saved = dictionary or out_file.with_name(out_file.name + ".dictionary")
    started = time.perf_counter()
    wanted = VisualTerms(**{"n_terms": "auto", **given}, seed=seed)
    if saved.exists():
        terms = VisualTerms.load(saved)
        if dictionary is None:
            terms.refuse_other(wanted, saved, f"use it with --dictionary {saved}, delete it, or choose another --out")
        else:
            terms.refuse_other(wanted, saved, "leave these options out, or give another --dictionary", names=given)
    else:
        terms = wanted.fit(source, executor=run, progress=progress)
        terms.save(saved)
    written = extract(source, terms, out_file, executor=run, progress=progress, rejects=rejects, augment=augment)
    settle(rejects, rejects_file)
    seconds = time.perf_counter() - started
    if json:
        show_json(
            {
                "schema": 1,
                "out": str(out_file),
                "dictionary": str(saved),
                "rows": written,
                "skipped": len(rejects),
                "seconds": round(seconds, 3),
            }
        )
        return
    out.print(f"{out_file}: {written:,} rows of {terms.n_terms_:,} visual terms; dictionary {saved}", markup=False)
