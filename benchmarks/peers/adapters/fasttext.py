"""fastText, supervised: words are written as text, because it reads nothing else.

It cannot go on training and its rate falls linearly with the length of the run, so that a search doubles the length as
long as that helps; each length is a run of its own. Reading the dictionary is measured by a run of no epochs and
taken off. In training it parses the text again in every epoch; that is a part of its loop and counts.
"""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.harness import Run, main

FIRST_LENGTH = 5


def train(run: Run) -> None:
    """Runs of 5, 10, 20 ... epochs; the final run is one of the chosen length."""
    import fasttext

    options = dict(run.params)
    repeated = options.pop("tokens") == "counts"
    with run.measure_separately("write_s"):
        text = _text_of_rows(run, repeated)
    options.update(dim=run.job["dim"], thread=run.threads, bucket=0, minCount=1, verbose=0, seed=run.seed)
    options["input"] = str(text)
    dictionary_s = _dictionary_seconds(options)
    run.note(parse_s=round(dictionary_s, 3))
    cost, judged_bags = 0.0, _bag(run.judge_X, repeated)
    for length in run.lengths(FIRST_LENGTH):
        if not run.affords(2 * cost):
            break
        seconds, spent = run.clock.seconds, run.spent
        with run.training():
            model = fasttext.train_supervised(epoch=length, **options)
        run.clock.take_off(dictionary_s)
        cost = run.spent - spent
        took = run.clock.seconds - seconds
        if run.finish_round(length, _scores(model, judged_bags, run.n_labels), seconds=took, patience=1):
            break
    run.note(model_bytes=model.get_input_matrix().nbytes + model.get_output_matrix().nbytes)


def _dictionary_seconds(options: dict[str, Any]) -> float:
    """Seconds to read the dictionary and to make the tables: a run of no epochs."""
    import fasttext

    started = time.perf_counter()
    fasttext.train_supervised(epoch=0, **options)
    return time.perf_counter() - started


def _text_of_rows(run: Run, repeated: bool) -> Path:
    """The training rows as `__label__3 17 17 204 ...`, kept for the trials to come."""
    n = len(run.y)
    file = Path(run.job["scratch"]) / f"{run.job['task']}-{n}-{'counts' if repeated else 'set'}.txt"
    if file.exists():
        return file
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    with draft.open("w") as out:
        out.writelines(_lines(run.X, run.y, repeated))
    draft.replace(file)
    return file


def _lines(X: Any, y: Any, repeated: bool) -> Any:
    names = np.array([str(word) for word in range(X.shape[1])], dtype=object)
    for row in range(X.shape[0]):
        span = slice(X.indptr[row], X.indptr[row + 1])
        words = names[X.indices[span]]
        if repeated:
            words = np.repeat(words, X.data[span].astype(np.int64))
        yield f"__label__{y[row]} {' '.join(words)}\n"


def _bag(X: Any, repeated: bool) -> Any:
    return X if repeated else sp.csr_matrix((np.ones_like(X.data), X.indices, X.indptr), shape=X.shape)


def _scores(model: Any, bags: Any, n_labels: int) -> Any:
    """The products that its softmax and its sigmoids rise with; labels that it never saw are left out."""
    columns = [int(label[len("__label__") :]) for label in model.get_labels()]
    points, output = _points(model, bags), model.get_output_matrix()

    def scores(lo: int, hi: int) -> Any:
        out = np.full((hi - lo, n_labels), -np.inf, np.float32)
        out[:, columns] = points[lo:hi] @ output.T
        return out

    return scores


def _points(model: Any, bags: Any) -> Any:
    """fastText's hidden layer: the mean vector of a line's known words, the end of the line among them."""
    words = model.get_words()
    number = {word: position for position, word in enumerate(words)}
    known_words = [word for word in range(bags.shape[1]) if str(word) in number]
    vectors = model.get_input_matrix()
    sums = bags[:, known_words] @ vectors[[number[str(word)] for word in known_words]]
    sizes = np.asarray(bags[:, known_words].sum(1)).ravel()
    if "</s>" in number:
        sums, sizes = sums + vectors[number["</s>"]], sizes + 1
    return (sums / np.maximum(sizes, 1)[:, None]).astype(np.float32)


if __name__ == "__main__":
    main(train)
