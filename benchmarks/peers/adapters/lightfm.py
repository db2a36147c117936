"""LightFM: rows are users with words as features, labels are items; WARP loss."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.peers.harness import Run, main


def train(run: Run) -> None:
    """One epoch after the other; the final run is a single call."""
    from lightfm import LightFM

    options = dict(run.params)
    X, judge_X = run.scale_rows(options.pop("rows"))
    pairs = sp.coo_matrix(
        (np.ones(len(run.y), np.float32), (np.arange(len(run.y), dtype=np.int32), run.y)),
        shape=(len(run.y), run.n_labels),
    )
    model = LightFM(no_components=run.job["dim"], loss="warp", random_state=run.seed, **options)
    n_epochs = 0
    for epochs in run.steps():
        with run.training():
            model.fit_partial(pairs, user_features=X, epochs=epochs, num_threads=run.threads)
        n_epochs += epochs
        if run.finish_round(n_epochs, _scores(model, judge_X)):
            break
    arrays = (model.user_embeddings, model.item_embeddings, model.user_biases, model.item_biases)
    run.note(model_bytes=sum(array.nbytes for array in arrays))


def _scores(model: Any, judge_X: Any) -> Any:
    """The model's own scores, as one matrix product; a row's bias is left out, for it moves no label."""
    _, points = model.get_user_representations(judge_X)
    bias, labels = model.get_item_representations()
    return lambda lo, hi: points[lo:hi] @ labels.T + bias


if __name__ == "__main__":
    main(train)
