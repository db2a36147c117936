"""Tables and figures of the 2012 slides (Bengio et al.) that are not in the paper."""

from papers import record_charts
from papers.claims import OrderingClaim, StatementCheck
from papers.record import PaperRecord, PublishedFigures, RecordEntry
from papers.runs import feature_comparison, model_tables, rank_estimate

DOCUMENT = 'Bengio 2012, "Learning a Semantic Space: From Image Annotation to Music Similarity" (slides)'
_METRICS = ("p@1", "p@10", "MAP")
_FREQUENT = "a frequent label enters with one of the sets, or rows have several labels, of which more are then right"
_WIDE = "the norm limit keeps the wide model from overfitting, which a mean of models would mend otherwise"
_NO_BETTER = "what tells these pictures apart is in the visual words already, and more numbers overfit few pictures"
_NEAR = "test pictures have near twins among the training pictures, whose labels a neighbour copies"
_ALIKE = "models of few rows and long training make much the same mistakes, so that their mean corrects little"

RECORDS = (
    PaperRecord(
        "slides-example",
        "Two ranking functions that AUC cannot tell apart",
        DOCUMENT,
        'Slide "Ranking Annotations: AUC is Suboptimal"',
        "Violations and L of two true labels at the given ranks; no data.",
        rank_estimate.compare_two_functions,
        (
            PublishedFigures(
                "slides", ("violations", "L"), {"ranks 1 and 101": (100, 5.18), "ranks 50 and 52": (100, 8.99)}
            ),
        ),
        wrong=(
            "The figures are cut, not rounded: H(0) + H(100) = 5.187 and H(49) + H(51) = 8.998.",
            "The first paper gives ranks 1 and 100 against 50 and 50, which have 99 and 98 violations: off by one.",
        ),
        claims=(
            StatementCheck("AUC prefers both equally", rank_estimate.check_equal_violations),
            StatementCheck("L prefers ranks 1 and 101", rank_estimate.check_top_preference),
        ),
        needs_data=False,
    ),
    PaperRecord(
        "slides-rank-approximation",
        "Rank estimate against the rank",
        DOCUMENT,
        "Slide on the accuracy of the approximation",
        "The exact law for the papers' numbers of labels, at ranks from 1 to Y-1; no data.",
        rank_estimate.compute_rank_approximation,
        wrong=(
            "The slide is a plot without figures; p = rank / (Y-1), and E[(Y-1)/N] = sum of (Y-1)/i (1-p)^(i-1) p.",
        ),
        claims=(),
        columns=("rank", "p", "(Y-1)/E[N]", "E[(Y-1)/N]", "E[floor((Y-1)/N)]"),
        needs_data=False,
    ),
    PaperRecord(
        "slides-ensembles",
        "Several models together",
        DOCUMENT,
        'Slide "Training an Ensemble of WSABIEs"',
        "One model, ensembles, one model with as many numbers as an ensemble of 3 has, and one with as many epochs, on "
        "the same split.",
        model_tables.compare_entries,
        (
            PublishedFigures(
                "ImageNet",
                _METRICS,
                {
                    "Approx. k-NN": (1.55, 0.41, 2.32),
                    "One-vs-Rest": (2.27, 1.02, 5.17),
                    "PAMIR-IA": (3.14, 1.26, 6.43),
                    "Wsabie": (4.03, 1.48, 7.75),
                    "Wsabie ensemble (2 models)": (5.74, 1.97, 10.17),
                    "Wsabie ensemble (3 models)": (6.14, 2.09, 11.23),
                },
                percent=True,
            ),
        ),
        wrong=('The 2011 paper on objects and parts prints the ensemble of 3 as "WSABIE [d=500]".',),
        claims=(
            OrderingClaim("Wsabie ensemble (2 models) > Wsabie in MAP", _ALIKE),
            OrderingClaim("Wsabie ensemble (3 models) > Wsabie ensemble (2 models) in MAP", _ALIKE),
            OrderingClaim("Wsabie ensemble (3 models) > Wsabie, three times the dimensions in MAP", _WIDE, ours=True),
            OrderingClaim("Wsabie ensemble (3 models) > Wsabie, three times the epochs in MAP", _ALIKE, ours=True),
        ),
        entries=(
            RecordEntry("Approx. k-NN", "approximate-nearest"),
            RecordEntry("One-vs-Rest", "one-vs-rest-pa"),
            RecordEntry("PAMIR-IA", "pamir"),
            RecordEntry("Wsabie", "wsabie"),
            RecordEntry("Wsabie ensemble (2 models)", "ensemble-2"),
            RecordEntry("Wsabie ensemble (3 models)", "ensemble-3"),
            RecordEntry("Wsabie, three times the dimensions", "wsabie", {"dim": 300}),
            RecordEntry("Wsabie, three times the epochs", "wsabie", {"epochs": model_tables.triple_epochs}),
        ),
        columns=("p@1", "p@10", "MAP", "train s", "MB"),
    ),
    PaperRecord(
        "slides-features",
        "Better features",
        DOCUMENT,
        'Slide "Using Better Features"',
        "The same pictures, on the same sides, described in five ways, and fitted and judged on each; the better "
        "features are all four side by side, without kernel PCA.",
        feature_comparison.compare_image_features,
        (
            PublishedFigures(
                "ImageNet",
                _METRICS,
                {
                    "Wsabie, visterms": (4.03, 1.48, 7.75),
                    "Wsabie ensemble (3 models), visterms": (6.14, 2.09, 11.23),
                    "Exact Nearest Neighbor, better features": (7.73, None, None),
                    "Wsabie, better features": (8.83, 2.71, 14.97),
                    "Wsabie ensemble (3 models), better features": (9.82, 2.88, 16.24),
                    "Wsabie ensemble (10 models), better features": (10.03, 3.02, 17.02),
                },
                percent=True,
            ),
        ),
        wrong=(
            'The 2011 paper on objects and parts prints the ensemble of 10 as "WSABIE [d=1000]", and calls the '
            "features an "
            "ensemble of histograms brought to 1,024 dimensions by kernel PCA.",
        ),
        claims=(
            OrderingClaim("Wsabie, better features > Wsabie, visterms in p@1", _NO_BETTER),
            OrderingClaim("Wsabie, better features > Wsabie, visterms in MAP", _NO_BETTER),
            OrderingClaim(
                "Wsabie ensemble (3 models), better features > Wsabie ensemble (3 models), visterms in MAP", _NO_BETTER
            ),
            OrderingClaim("Wsabie, better features > Exact Nearest Neighbor, better features in p@1", _NEAR),
            OrderingClaim("Wsabie ensemble (3 models), better features > Wsabie, better features in MAP", _ALIKE),
            OrderingClaim(
                "Wsabie ensemble (10 models), better features > Wsabie ensemble (3 models), better features in MAP",
                _ALIKE,
            ),
        ),
        entries=(
            *(RecordEntry(f"Wsabie, {features}", "wsabie") for features in feature_comparison.DESCRIPTIONS),
            RecordEntry("Wsabie ensemble (3 models), visterms", "ensemble-3"),
            RecordEntry("Exact Nearest Neighbor, better features", "nearest", {"k": 1}),
            RecordEntry("Wsabie ensemble (3 models), better features", "ensemble-3"),
            RecordEntry("Wsabie ensemble (10 models), better features", "ensemble-10"),
        ),
    ),
    PaperRecord(
        "slides-size-matters",
        "Accuracy and the number of labels",
        DOCUMENT,
        'Slides "Size Matters" and "Size Matters - Revisited"',
        "Models fitted and judged on a sixteenth of the labels, an eighth and so on to all, each set within the next.",
        model_tables.compare_nested_label_sets,
        wrong=("The slides are plots without figures.",),
        claims=(
            StatementCheck("p@1 falls with each step", record_charts.check_falls("p@1", "Wsabie"), _FREQUENT),
            StatementCheck("MAP falls with each step", record_charts.check_falls("MAP", "Wsabie"), _FREQUENT),
        ),
        entries=(
            RecordEntry("Wsabie", "wsabie"),
            RecordEntry("k-NN", "nearest"),
            RecordEntry("most frequent", "popularity"),
        ),
        columns=("labels", "p@1", "p@10", "MAP"),
        chart=record_charts.draw_by_label_count,
    ),
)
