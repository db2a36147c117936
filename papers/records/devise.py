"""The appendix of DeViSE (2013): sizes of correct sets, and labels never seen."""

from papers.claims import OrderingClaim, StatementCheck
from papers.record import PaperRecord, PublishedFigures, RecordEntry
from papers.runs import correct_sets, synset_names, zero_shot

DOCUMENT = 'Frome and others 2013, "DeViSE: A Deep Visual-Semantic Embedding Model", appendix'
_KS = tuple(f"k = {k}" for k in correct_sets.KS)
_WEAK = "colours and gradients say little of what a word means, and five pictures a label teach little"
_NOISE = "words of few dimensions are near each other"
_TWO = "ConSE needs no map, and its classifier is as good as the features"

RECORDS = (
    PaperRecord(
        "devise-table1",
        "Sizes of correct sets",
        DOCUMENT,
        "Table 1",
        "Mean sizes by the loop as it is printed, and by other readings of it.",
        correct_sets.compute_mean_sizes,
        (
            PublishedFigures(
                "paper",
                ("labels", *_KS),
                {
                    correct_sets.SEEDS: (1000, 6.5, 12.5, 22.5, 41.7),
                    correct_sets.TWO: (2589, 3.2, 16.8, 25.5, 45.2),
                    correct_sets.THREE: (8860, 4.4, 577.4, 635.4, 668.0),
                    correct_sets.ALL_LABELS: (21900, 5.4, 273.3, 317.4, 350.6),
                },
            ),
        ),
        wrong=(
            "The set is called hCorrectSet and kCorrectSet, and the loop's bracket stands at the wrong place; where "
            "fewer than k labels can be reached it has no end. Here it stops.",
            "No reading that was tried gives the paper's row of the 1K set. Tried by hand besides: all labels under "
            "the R-th ancestors (14.2, 38.6, 65.5, 103.0), R up and R down again (7.3, 18.2, 28.5, 56.7), hops among "
            "the ancestors of the 1K labels alone (4.5, 9.5, 17.8, 33.1), the same without concepts of one child (4.9, "
            "9.9, 18.5, 32.7), every path to a label counted (4.6, 9.5, 18.5, 35.0), sizes counted before the set is "
            "restricted (1.0, 3.2, 4.2, 6.0), one ring alone that has k labels (7.0, 15.6, 29.3, 58.9), and the 1K "
            "labels among all 21K (3.1, 16.0, 25.4, 41.6, which is near the paper's row of the 2-hop set). Labels "
            "count alike, for the lists do not say how many test pictures each has.",
            "The numbers of labels suggest that the paper's sets lie one hop nearer than their names say, and that it "
            "counted in ImageNet's own tree, where what is under none of eight tops is a child of Misc: within one "
            "is-a pair of the 1K there are 2,548 labels (the paper's 2-hop set has 2,589), within two 6,989 in "
            "WordNet and 8,754 in such a tree (its 3-hop set has 8,860). Misc also makes sets of hundreds of labels, "
            "here from k = 2 on, in the paper from k = 5.",
        ),
        columns=("labels", *_KS),
        opening=correct_sets.OPENING,
    ),
    PaperRecord(
        "devise-zero-shot",
        "Labels never seen",
        DOCUMENT,
        "Section A.1, for Section 4.2 of the paper",
        "The labels of a collection that have a word vector, 25 of them held out 10 times with all their rows.",
        zero_shot.run_zero_shot,
        wrong=("The appendix prints no figures of its own for labels never seen; the paper's are of other data.",),
        claims=(
            StatementCheck(
                "hit@5 of DeViSE is above chance by two standard errors", zero_shot.check_above_chance, _WEAK, ours=True
            ),
            StatementCheck(
                "on the planted task it is three times chance or more", zero_shot.check_thrice_chance, _NOISE, ours=True
            ),
            OrderingClaim("DeViSE > free label vectors in hp@5", _WEAK, ours=True),
            OrderingClaim("DeViSE > random label vectors in hit@5", _WEAK),
            OrderingClaim("DeViSE > softmax in hp@5", _WEAK),
            OrderingClaim("DeViSE > ConSE in hit@5", _TWO, ours=True),
        ),
        entries=(
            RecordEntry("DeViSE", "devise"),
            RecordEntry("ConSE", "conse"),
            RecordEntry("random label vectors", "devise-random"),
            RecordEntry("free label vectors", "wsabie"),
            RecordEntry("softmax", "softmax"),
        ),
        columns=("hit@1", "hit@5", "s.e. of hit@5", "hp@2", "hp@5", "herr@5"),
        opening=zero_shot.OPENING,
    ),
    PaperRecord(
        "devise-21k",
        "Names never seen among 21K",
        DOCUMENT,
        "Section A.1, for Table 2 of the paper",
        "Photos of synsets outside the 1K, their names ranked among those of the 2-hop set, the 3-hop set and all.",
        synset_names.run_synset_names,
        wrong=("The paper's figures are of all photos of these sets, and of a network and word vectors of its own.",),
        columns=("labels", "photos", *(f"hit@{k}" for k in synset_names.KS)),
        opening=synset_names.OPENING,
    ),
)
