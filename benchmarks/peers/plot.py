"""Time-to-quality curves as SVG, when matplotlib is there."""

from pathlib import Path
from typing import Any


def curves(summary: dict[str, Any], file: Path) -> None:
    """Draw the best validation MRR that any repeated trial of a system had reached by so many seconds of training."""
    try:
        import matplotlib as mpl
    except ImportError:
        return
    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, system in summary["systems"].items():
        if not system["envelope"]:
            continue
        seconds, figures = zip(*system["envelope"], strict=True)
        axes.step(seconds, figures, where="post", marker=".", label=name, linewidth=2 if name == "wsabie" else 1)
    axes.set(
        xscale="log", xlabel="seconds of training", ylabel="validation MRR", title=f"Task {summary['task']['name']}"
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    with mpl.rc_context({"svg.hashsalt": "wsabie"}):
        figure.savefig(file, metadata={"Date": None})
    plt.close(figure)
