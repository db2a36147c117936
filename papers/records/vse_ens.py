"""Tables and figures of Guo et al. 2018, "VSE-ens"."""

from itertools import product

from papers import record_charts
from papers.claims import OrderingClaim, StatementCheck
from papers.record import PaperRecord, PublishedFigures, RecordEntry
from papers.runs import collection_statistics, leave_one_out

DOCUMENT = 'Guo et al. 2018, "VSE-ens: Visual-Semantic Embeddings with Efficient Negative Sampling"'
_METRICS = ("p@5", "recall@5", "p@10", "recall@10", "MAP", "AUC")


_LIMITS: tuple[dict[str, float | None], ...] = (
    {"max_norm": 1.2, "l2": 0.0},
    {"max_norm": 1.5, "l2": 0.0},
    {"max_norm": None, "l2": 0.03},
    {"max_norm": None, "l2": 0.1},
)
_GRID = tuple({"learning_rate": rate, **limit} for rate, limit in product((0.03, 0.01, 0.1, 0.3), _LIMITS))
"""Settings of every model."""
_SHARED = {"schedule": "linear", "pair_weighting": "pairs"}
_MODELS = (
    RecordEntry("VSE-ens", "vse-ens", _SHARED, _GRID),
    RecordEntry("WARP", "wsabie", {**_SHARED, "max_sampled": None}, _GRID),
    RecordEntry("Opt-AUC", "opt-auc", _SHARED, _GRID),
    RecordEntry("hinge AUC", "wsabie-auc", _SHARED, _GRID),
)
_SELECTION_NOTE = (
    f"All models choose among the same {len(_GRID)} settings (learning rate times a norm limit or L2; the "
    f"rate falls to 0, pairs weigh alike, rank_scale is .1), and the best of {leave_one_out.EPOCHS} epochs, by the MAP "
    "of a second label of a tenth of the rows; nothing of the test chooses."
)
_WARP = (
    "The code that its authors published calls WARP a sampler without rank weight, with the logistic gradient, that "
    "goes "
    "through the labels in the order of their numbers; the WARP that runs here is the first paper's."
)


def _accuracy(data: str, *rows: tuple[float | str, ...]) -> PublishedFigures:
    return PublishedFigures(
        data, _METRICS, dict(zip(("VSE-ens", "WARP", "Opt-AUC", leave_one_out.IMPROVE), rows, strict=True))
    )


_HARD = "with few labels a uniform negative is hard often enough, and a rank weight overfits few pairs"
_DRAWS = "with few labels WARP finds its violator in a few draws, which cost less than an adaptive one"
_EPOCHS = "a uniform draw costs less than an adaptive one, and the epoch that was chosen came early"
_RATES = "each model has a learning rate of its own, and the best epoch of small data comes early"
_SOON = "few pairs are learned by heart only after more epochs than these"

RECORDS = (
    PaperRecord(
        "vse-ens-table-1",
        "Statistics of the collections",
        DOCUMENT,
        "Table 1",
        "The rows that have labels are counted; of each with two or more, one is held out for the test.",
        collection_statistics.count_image_pairs,
        (
            PublishedFigures(
                "OpenImages",
                ("count",),
                {"Images": (112247,), "Labels": (6000,), "Train": (887752,), "Test": (112247,)},
            ),
            PublishedFigures(
                "NUS-WIDE", ("count",), {"Images": (269648,), "Labels": (5108,), "Train": (2018879,), "Test": (267642,)}
            ),
            PublishedFigures(
                "IAPR-TC12", ("count",), {"Images": (19627,), "Labels": (291,), "Train": (79527,), "Test": (20000,)}
            ),
        ),
        wrong=("IAPR-TC12 has 20,000 test pairs of 19,627 images, although one label of each is held out.",),
    ),
    PaperRecord(
        "vse-ens-table-2",
        "Accuracy of the samplers",
        DOCUMENT,
        "Table 2",
        "Rows are ids with a free vector each; one label of each row is held out and ranked among the labels that "
        f"the row was not trained with. {_SELECTION_NOTE}",
        leave_one_out.run_leave_one_out,
        (
            _accuracy(
                "OpenImages",
                (0.0574, 0.2869, 0.0434, 0.4342, 0.1762, 0.7168),
                (0.0526, 0.2628, 0.0390, 0.3900, 0.1676, 0.6948),
                (0.0188, 0.0938, 0.0147, 0.1465, 0.0564, 0.5732),
                ("9.13%", "9.17%", "11.28%", "11.33%", "5.13%", "3.17%"),
            ),
            _accuracy(
                "NUS-WIDE",
                (0.0278, 0.1391, 0.0198, 0.1982, 0.0893, 0.5990),
                (0.0107, 0.0533, 0.0083, 0.0830, 0.0336, 0.5415),
                (0.0035, 0.0177, 0.0028, 0.0279, 0.0113, 0.5139),
                ("159.81%", "160.98%", "138.55%", "138.80%", "165.77%", "10.62%"),
            ),
            _accuracy(
                "IAPR-TC12",
                (0.0598, 0.2990, 0.0436, 0.4364, 0.1836, 0.7126),
                (0.0595, 0.2976, 0.0428, 0.4278, 0.1796, 0.7086),
                (0.0543, 0.2713, 0.0414, 0.4136, 0.1629, 0.7011),
                ("0.50%", "0.47%", "1.87%", "2.01%", "2.23%", "0.56%"),
            ),
        ),
        wrong=(
            _WARP,
            "Its negatives are not checked against the held-out label: the published code leaves test labels out of "
            "them.",
        ),
        claims=(
            OrderingClaim("VSE-ens > WARP in MAP", "the paper's WARP has no rank weight"),
            OrderingClaim("VSE-ens > WARP in p@5", "the paper's WARP has no rank weight"),
            OrderingClaim("VSE-ens > WARP in recall@5", "the paper's WARP has no rank weight"),
            OrderingClaim("VSE-ens > WARP in recall@10", "the paper's WARP has no rank weight"),
            OrderingClaim("VSE-ens > WARP in AUC", "the paper's WARP has no rank weight"),
            OrderingClaim("WARP > Opt-AUC in MAP", _HARD),
            OrderingClaim("WARP > Opt-AUC in AUC", "AUC is what Opt-AUC is trained for"),
            OrderingClaim("VSE-ens > hinge AUC in MAP", _HARD, ours=True),
        ),
        entries=_MODELS,
    ),
    PaperRecord(
        "vse-ens-table-3",
        "Time of one step in formulas",
        DOCUMENT,
        "Table 3",
        "The paper's formulas with k = 100 and, for WARP, the draws per visited pair in its last epoch on these data.",
        leave_one_out.compute_step_costs,
        (PublishedFigures("formula", ("time",), {"VSE-ens": ("O(2 k)",), "WARP": ("O(T k)",), "Opt-AUC": ("O(k)",)}),),
        entries=(RecordEntry("WARP", "wsabie", {"max_sampled": None}),),
        columns=("time", "multiplications"),
    ),
    PaperRecord(
        "vse-ens-table-4",
        "Training time of the samplers",
        DOCUMENT,
        "Table 4",
        "The same runs as Table 2: hours of training until the epoch that was chosen, of the setting that was chosen; "
        f"judging and compilation are not counted. {_SELECTION_NOTE}",
        leave_one_out.run_leave_one_out,
        (
            PublishedFigures("OpenImages", ("train h",), {"VSE-ens": (7.1,), "WARP": (35.65,), "Opt-AUC": (10.13,)}),
            PublishedFigures("NUS-WIDE", ("train h",), {"VSE-ens": (24.83,), "WARP": (51.46,), "Opt-AUC": (25.06,)}),
            PublishedFigures("IAPR-TC12", ("train h",), {"VSE-ens": (0.95,), "WARP": (2.38,), "Opt-AUC": (1.82,)}),
            PublishedFigures("all three", ("epoch",), {"VSE-ens": (200,), "WARP": (150,), "Opt-AUC": (800,)}),
        ),
        wrong=(_WARP, "The speed-ups over WARP are 5.02, 2.07 and 2.51."),
        claims=(
            StatementCheck(
                "VSE-ens trains faster than WARP", record_charts.check_smaller("train h", "VSE-ens", "WARP"), _DRAWS
            ),
            StatementCheck(
                "VSE-ens trains faster than Opt-AUC",
                record_charts.check_smaller("train h", "VSE-ens", "Opt-AUC"),
                _EPOCHS,
            ),
            StatementCheck(
                "WARP needs fewer epochs than VSE-ens", record_charts.check_smaller("epoch", "WARP", "VSE-ens"), _RATES
            ),
            StatementCheck(
                "VSE-ens needs fewer epochs than Opt-AUC",
                record_charts.check_smaller("epoch", "VSE-ens", "Opt-AUC"),
                _RATES,
            ),
        ),
        entries=_MODELS,
        columns=("train h", "train s", "epoch", "MAP"),
    ),
    PaperRecord(
        "vse-ens-figure-1",
        "Negatives drawn by WARP during training",
        DOCUMENT,
        "Figure 1",
        "Negatives drawn per visit of a pair in each epoch, whether a step follows or not, without a limit on the "
        "draws; rows are ids.",
        leave_one_out.count_draws,
        (
            PublishedFigures("OpenImages", ("draws per visit",), {"at the plateau": (2100,)}),
            PublishedFigures("NUS-WIDE", ("draws per visit",), {"at the plateau": (900,)}),
            PublishedFigures("IAPR-TC12", ("draws per visit",), {"at the plateau": (1600,)}),
        ),
        wrong=(
            "The plateaus are read off a plot. 1,600 draws on the 291 labels of IAPR-TC12 cannot be draws of "
            "distinct labels.",
        ),
        claims=(
            StatementCheck(
                "draws per visit rise from the first epoch to the last",
                record_charts.check_rises("draws per visit", "WARP"),
                _SOON,
            ),
        ),
        entries=(RecordEntry("WARP", "wsabie", {"max_sampled": None, "loss": "warp"}),),
        columns=("epoch", "draws per visit", "updates per visit"),
        chart=record_charts.draw_by_epoch,
    ),
)
