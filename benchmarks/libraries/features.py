"""Features: words of a dictionary, hashed words, kernel principal components, cepstral coefficients."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.libraries.measure import Work, compare
from benchmarks.libraries.readers import read_documents
from wsabie.core.arrays import Float32
from wsabie.features.audio.mfcc import MfccConfig, compute_mfcc
from wsabie.features.extractors.bag_of_words import BagOfWords, WordCounter
from wsabie.features.kernel_pca import KernelPca
from wsabie.features.nystroem import compute_exact_kernel, measure_loss
from wsabie.features.text.text_decoder import fold_text

COPIES, RATE, SECONDS = 8, 16_000, 120
FEW_ROWS, COMPONENTS, FEW_COMPONENTS, LANDMARKS = 600, 256, 64, 128
WORD = r"\w+"


def run(folder: Path) -> None:
    """Count words of the bundled documentation, find their components, and describe a made-up sound."""
    _compare_words()
    _compare_many_words()
    _compare_components()
    _compare_sound()


def _compare_words() -> None:
    texts = [document["text"] for document in read_documents()] * COPIES
    size = sum(map(len, texts)) / 1e6

    def ours(**options: Any) -> Work:
        bag = BagOfWords(**options)
        counter = WordCounter(10_000)
        counter.add(bytearray(fold_text(" ".join(texts))))
        bag.words_, _ = counter.most_frequent(10_000)
        return lambda: sum(len(bag.extract_text(text)[0]) for text in texts)

    def count() -> Work:
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(token_pattern=WORD, max_features=10_000).fit(texts)
        return lambda: vectorizer.transform(texts).nnz

    def hashed() -> Work:
        from sklearn.feature_extraction.text import HashingVectorizer

        vectorizer = HashingVectorizer(token_pattern=WORD, n_features=10_000, norm=None, alternate_sign=False)
        return lambda: vectorizer.transform(texts).nnz

    title = f"{len(texts):,} documents, {size:.1f} MB: "
    note = lambda n: f"{n:,} non-zeros"  # noqa: E731
    compare(title + "words of a dictionary", {"ours": ours, "scikit-learn CountVectorizer": count}, note)
    entrants = {"ours": lambda: ours(n_words=10_000, hashing=True), "scikit-learn HashingVectorizer": hashed}
    compare(title + "hashed words", entrants, note)


def _compare_many_words() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.zipf(1.2, 300_000) % 1_000_000
    texts = [" ".join(f"w{n}" for n in part) for part in np.array_split(numbers, 300)]

    def ours() -> Work:
        def work() -> set[str]:
            counter = WordCounter(10_000)
            for text in texts:
                counter.add(bytearray(fold_text(text)))
            words, _ = counter.most_frequent(10_000)
            return {words.get_word(number) for number in range(len(words))}

        return work

    def count() -> Work:
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(token_pattern=WORD, max_features=10_000)
        return lambda: set(vectorizer.fit(texts).vocabulary_)

    expected = count()()
    compare(
        f"dictionary of 10,000 of {len(set(numbers.tolist())):,} words in 300,000",
        {"ours": ours, "scikit-learn CountVectorizer": count},
        lambda words: f"{len(words & expected):,} words in common",  # type: ignore[operator]
    )


def _compare_components() -> None:
    from scipy.sparse import csr_matrix

    texts = [document["text"] for document in read_documents()]
    bag = BagOfWords(10_000, hashing=True, weighting="counts")
    cells = [bag.extract_text(text) for text in texts]
    ends = np.cumsum([0, *(len(columns) for columns, _ in cells)])
    columns, values = (np.concatenate(part) for part in zip(*cells, strict=True))
    X = csr_matrix((values.astype(np.float32), columns, ends), shape=(len(texts), 10_000))
    few = X[:FEW_ROWS]
    dense = few.toarray()

    def ours(rows: Any, n_components: int, **options: Any) -> Work:
        return lambda: KernelPca(n_components, **options).fit(rows, threads=1).transform(rows, threads=1)

    def intersect(x: Any, z: Any) -> float:
        return float(np.minimum(x, z).sum())

    def by_our_kernel() -> Work:
        from sklearn.decomposition import KernelPCA

        pca = KernelPCA(COMPONENTS, kernel="precomputed")
        return lambda: pca.fit_transform(compute_exact_kernel(X, X, 1))

    def exact() -> Work:
        from sklearn.decomposition import KernelPCA

        return lambda: KernelPCA(FEW_COMPONENTS, kernel=intersect).fit_transform(dense)

    def approximate() -> Work:
        from sklearn.decomposition import PCA
        from sklearn.kernel_approximation import Nystroem

        nystroem = Nystroem(intersect, n_components=LANDMARKS, random_state=0)
        return lambda: PCA(FEW_COMPONENTS).fit_transform(nystroem.fit_transform(dense))

    def note(rows: Any) -> str:
        used = X if len(rows) == X.shape[0] else few
        loss = measure_loss(compute_exact_kernel(used, used, 1), rows)
        return f"explained {loss.explained:.3f}, error {loss.error:.3f}"

    title = f"{COMPONENTS} components of {len(texts):,} rows of 10,000 hashed words"
    entrants = {"ours": lambda: ours(X, COMPONENTS), "scikit-learn KernelPCA, our kernel": by_our_kernel}
    compare(title, entrants, note)
    title = f"{FEW_COMPONENTS} components of {FEW_ROWS} rows"
    compare(title, {"ours": lambda: ours(few, FEW_COMPONENTS), "scikit-learn KernelPCA": exact}, note)
    entrants = {"ours": lambda: ours(few, FEW_COMPONENTS, n_landmarks=LANDMARKS, choice="uniform"),
                "scikit-learn Nystroem and PCA": approximate}  # fmt: skip
    compare(f"{title}, {LANDMARKS} landmarks", entrants, note)


def _compare_sound() -> None:
    rng = np.random.default_rng(0)
    time = np.arange(RATE * SECONDS) / RATE
    sound = (np.sin(2 * np.pi * (200 + 100 * np.sin(time)) * time) + 0.1 * rng.normal(size=len(time))).astype("f4")
    plan = MfccConfig(RATE)
    expected = compute_mfcc(sound, plan)

    def ours() -> Work:
        return lambda: compute_mfcc(sound, plan)

    def librosa() -> Work:
        import librosa as library

        options: Any = {"n_fft": plan.n_fft, "win_length": plan.window_samples, "hop_length": plan.hop_samples}

        def work() -> Float32:
            rows: Float32 = library.feature.mfcc(
                y=sound, sr=RATE, n_mfcc=13, n_mels=plan.n_bands, center=True, pad_mode="constant", **options
            ).T
            return rows

        return work

    def torchaudio() -> Work:
        import torch
        from torchaudio.transforms import MFCC

        bands = {"n_fft": plan.n_fft, "win_length": plan.window_samples, "hop_length": plan.hop_samples,
                 "n_mels": plan.n_bands, "mel_scale": "slaney", "norm": "slaney", "pad_mode": "constant"}  # fmt: skip
        transform, samples = MFCC(RATE, 13, melkwargs=bands), torch.from_numpy(sound)
        return lambda: transform(samples).numpy().T

    def note(rows: Any) -> str:
        same = rows.shape == expected.shape
        return f"{rows.shape}, largest difference {np.abs(rows - expected).max():.1e}" if same else str(rows.shape)

    title = f"cepstral coefficients of {SECONDS} s of sound at {RATE:,} Hz"
    compare(title, {"ours": ours, "librosa": librosa, "torchaudio": torchaudio}, note)
