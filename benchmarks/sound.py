"""Seconds of sound turned into features per second of CPU, one process: `python -m benchmarks.sound FOLDER`.

FOLDER holds recordings of any length and rate; about ten minutes of them are joined to one track, which is written as
MP3 of 44,100 samples a second in two channels, the usual form of music, and measured from the file to the row.

--draw FILE instead draws stabilised images of sounds whose pitch is known.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine, verdict
from wsabie.core.arrays import Float32
from wsabie.features.audio.audio_decoder import EncodedAudio
from wsabie.features.audio.auditory_images import (
    AuditoryImageConfig,
    compute_auditory_images,
    compute_channel_frequencies,
)
from wsabie.features.extractor_registry import create_extractor
from wsabie.io.records import Item, ItemList

BARS = {"mfcc": 60.0, "sai": 8.0}
SECONDS, RATE, ROUNDS = 600, 44_100, 3


def track(folder: Path) -> Float32:
    """The recordings of a folder one after the other, as often as it takes."""
    blocks: list[Float32] = []
    files = sorted(folder.rglob("*.wav"))
    if not files:
        raise SystemExit(f"{folder} holds no .wav files; give a folder of recordings")
    n = 0
    while n < SECONDS * RATE:
        for file in files:
            blocks += list(EncodedAudio(file, 3600).iterate_pieces(RATE))
            n += len(blocks[-1])
            if n >= SECONDS * RATE:
                break
    return np.concatenate(blocks)[: SECONDS * RATE]


def rate_of(work: Any) -> float:
    """Seconds of the track per second of CPU: the median of some rounds."""
    rounds = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        rounds.append(SECONDS / (time.process_time() - started))
    return float(np.median(rounds))


def draw(file: Path) -> None:
    """Images of clicks, of harmonics without their fundamental, of a tone and of noise."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    rate, plan = 16_000, AuditoryImageConfig(16_000)
    t = np.arange(rate) / rate
    clicks = np.zeros(rate)
    clicks[:: rate // 100] = 0.5
    sounds = {
        "100 clicks a second": clicks,
        "harmonics 3 to 19 of 150 Hz": sum(0.1 * np.cos(2 * np.pi * k * 150 * t) for k in range(3, 20)),
        "a tone of 440 Hz": 0.3 * np.sin(2 * np.pi * 440 * t),
        "noise": 0.1 * np.random.default_rng(0).standard_normal(rate),
    }
    hertz = compute_channel_frequencies(plan)
    figure, places = plt.subplots(2, 2, figsize=(9, 5), layout="constrained", sharex=True, sharey=True)
    for axes, (name, samples) in zip(places.flat, sounds.items(), strict=True):
        *_, last = compute_auditory_images(np.asarray(samples, np.float32), plan)
        lags = 1000 * np.arange(plan.n_lags) / rate
        axes.pcolormesh(lags, np.arange(len(hertz)), np.sqrt(last), cmap="magma", rasterized=True)
        axes.set_title(name, fontsize=10)
    places[0, 0].invert_yaxis()  # shared by all
    rows = np.linspace(0, len(hertz) - 1, 6).astype(int)
    for axes in places[:, 0]:
        axes.set_yticks(rows, [f"{hertz[row]:,.0f}" for row in rows])
        axes.set_ylabel("channel, Hz")
    for axes in places[1]:
        axes.set_xlabel("lag, ms")
    figure.savefig(file, dpi=110)
    plt.close(figure)


def main() -> None:
    import soundfile

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draw", type=Path)
    options = parser.parse_args()
    if options.draw:
        draw(options.draw)
        return
    if options.folder is None:
        parser.error("give a folder of recordings")
    folder = options.folder
    print(describe_machine())
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "track.mp3"
        soundfile.write(file, np.repeat(track(folder)[:, None], 2, axis=1), RATE)
        source = ItemList(Path(place), [Item("track", file, ())], "sounds")
        decoding = rate_of(lambda: sum(map(len, EncodedAudio(file, 3600).iterate_pieces(22_050))))
        print(f"decoding and rate alone {decoding:8.0f} times real time")
        for feature_names in ("mfcc", "sai", "mfcc,sai"):
            extractor = create_extractor(feature_names).fit(source)
            extractor.transform_one(file)  # compilation
            rate = rate_of(lambda extractor=extractor: extractor.transform_one(file))
            bar = f", {verdict(rate, least=BARS[feature_names])}" if feature_names in BARS else ""
            print(f"{feature_names:<23} {rate:8.0f} times real time{bar}")


if __name__ == "__main__":
    main()
