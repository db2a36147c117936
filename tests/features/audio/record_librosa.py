"""Record librosa's coefficients: `python tests/features/audio/record_librosa.py FSDD`, with librosa 0.11 installed.

Coefficients and derivatives of noise and of three recordings, (n_frames, 39), become `librosa_mfcc.npz`. Recorded,
because librosa compiles for 15 seconds before its first coefficient.
"""

import sys
from pathlib import Path

import numpy as np
import soundfile

from wsabie.core.arrays import Float32
from wsabie.features.audio.mfcc import MfccConfig

FOLDER = Path(__file__).parent


def compute_librosa_mfcc(samples: Float32, plan: MfccConfig) -> Float32:
    import librosa

    bands = librosa.feature.melspectrogram(
        y=samples,
        sr=plan.rate,
        n_fft=plan.n_fft,
        win_length=plan.window_samples,
        hop_length=plan.hop_samples,
        n_mels=plan.n_bands,
        pad_mode="constant",
    )
    base = librosa.feature.mfcc(S=librosa.power_to_db(bands, top_db=None), n_mfcc=plan.n_coefficients)
    return np.vstack([base, librosa.feature.delta(base), librosa.feature.delta(base, order=2)]).T.astype(np.float32)


def main() -> None:
    arrays = {}
    for rate in (8_000, 16_000, 22_050, 44_100):
        noise = (0.1 * np.random.default_rng(0).standard_normal(rate)).astype(np.float32)
        arrays[f"noise {rate}"] = compute_librosa_mfcc(noise, MfccConfig(rate))
    for name in ("0_george_0", "7_theo_13", "9_nicolas_49"):
        samples, rate = soundfile.read(Path(sys.argv[1]) / "recordings" / f"{name}.wav", dtype="float32")
        arrays[name] = compute_librosa_mfcc(samples, MfccConfig(rate))
    np.savez_compressed(FOLDER / "librosa_mfcc.npz", **arrays)


if __name__ == "__main__":
    main()
