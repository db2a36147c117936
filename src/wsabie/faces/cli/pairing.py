"""`wsabie pairs`."""

from pathlib import Path

from wsabie.base.errors import InputError
from wsabie.faces.cli.common import listing
from wsabie.faces.cli.terminal import TerminalProgress, note, out, plural, show_json
from wsabie.storage.outputs import refuse_unwritable


def pairs_command(
    src: Path,
    target: Path,
    tracks: Path | None,
    least: int,
    cosine: float,
    top: int,
    heavy: int,
    seed: int,
    strict: bool,
    rejects_file: Path | None,
    json: bool,
) -> None:
    """Find the songs that the same people hear and write them as pairs."""
    from wsabie.sources.listened import read_heard, together, tracks_of_songs, write_together

    refuse_unwritable(("pairs", target), ("rejects", rejects_file), inputs=(src, tracks))
    progress = TerminalProgress()
    with listing(rejects_file, strict=strict) as rejects:
        known = None if tracks is None else tracks_of_songs(tracks, rejects=rejects)
        heard = read_heard(src, known=known, heavy=heavy, seed=seed, rejects=rejects, progress=progress)
    pairs = list(together(heard, least=least, cosine=cosine, top=top, progress=progress))
    n_songs, n_users = heard.by.shape
    if not pairs:
        raise InputError(
            f"no two songs of {src} have {plural(least, 'common listener')} and a cosine of {cosine:g}; give a lower "
            "--least or --cosine"
        )
    written = write_together(target, pairs, known)
    paired = len({song for one, other, _ in pairs for song in (one, other)})
    if json:
        counts = {"songs": n_songs, "listeners": n_users, "capped_listeners": heard.capped, "songs_in_pairs": paired}
        show_json({"schema": 1, "out": str(target), "pairs": written, **counts})
        return
    if heard.capped:
        note(f"of {plural(heard.capped, 'listener')} with more than {heavy:,} songs, {heavy:,} of these count")
    out.print(
        f"{target}: {plural(written, 'pair')} of {paired:,} of {plural(n_songs, 'song')}, heard by "
        f"{plural(n_users, 'listener')}"
    )
    note(f'next: pairs = "{target}" in a relation of a TOML file, and wsabie train with that file')
