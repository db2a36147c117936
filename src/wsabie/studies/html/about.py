"""What stands first and last: the result, what the data is, and how to make all of it again."""

from math import isfinite

from wsabie.studies.headline import Verdict, headline, list_length, verdict
from wsabie.studies.html.markup import Child, Markup, element, join
from wsabie.studies.html.page import Section, facts
from wsabie.studies.html.words import duration, figure, milliseconds, one, signed, size
from wsabie.studies.report_input import ReportInput


def header(given: ReportInput) -> Markup:
    """Title, the result in one sentence, and the figures that people ask for first."""
    cards = element("ul", [_stat(*stat) for stat in _stats(given)], class_="stats")
    made = f"wsabie report · {given.created}" if given.created else "wsabie report"
    return join(
        element("p", made, class_="eyebrow"),
        element("h1", given.title),
        element("p", headline(given.comparison, given.main, given.things), class_="lead"),
        cards,
    )


def data(given: ReportInput) -> Section:
    """Source, licence, counts, split."""
    known, told = given.comparison.task.facts, given.data
    things = given.things
    pairs: list[tuple[str, Child]] = [
        ("Collection", told.name),
        ("Source", told.source),
        ("Licence", told.licence),
        ("Split", told.split),
        (things.capitalize(), _sides(given)),
        ("Labels", _vocabulary(given)),
        ("Training pairs", f"{known.train_pairs:,} ({one(things)} and label)"),
        ("Test labels", _coverage(given)),
        ("Features", f"{known.features:,}"),
        ("Fingerprint", join(*_fingerprints(known.fingerprint))),
    ]
    return Section("data", "Data", "What the data is", told.description, facts(pairs))


def reproduce(given: ReportInput) -> Section:
    """Command, parameters, versions."""
    comparison = given.comparison
    entry = comparison[given.main]
    parameters = {**entry.parameters, **given.parameters}
    listed = facts([(name, element("code", str(value))) for name, value in sorted(parameters.items())])
    versions = facts([(name, value) for name, value in comparison.versions.items()])
    command = element("pre", element("code", given.command), tabindex=0) if given.command else None
    body = join(
        command,
        element("h3", f"Parameters of the {entry.title}"),
        element("div", listed, class_="columns"),
        element("h3", "Versions"),
        element("div", versions, class_="columns"),
    )
    intro = "The same command, versions and seed make the same model on the same kind of machine."
    return Section("again", "Reproduce", "How to make it again", intro if command else None, body)


def _stats(given: ReportInput) -> list[tuple[str, str, str]]:
    """(figure, what it is, small print)"""
    comparison, entry, k = given.comparison, given.comparison[given.main], list_length(given.comparison)
    metric, of, things = f"p@{k}", k if k > 1 else 100, "labels" if k > 1 else given.things
    interval = entry.intervals[metric]
    stats = [
        (
            f"{entry.evaluation.means[metric] * of:.1f} of {of}",
            "labels right" if k > 1 else f"{things} with the first label right",
            f"95 % interval {interval.low * of:.1f}–{interval.high * of:.1f}",
        )
    ]
    against = verdict(comparison, given.main, metric)
    if against is not None:
        low, high = (signed(end * of, 1) for end in (against.difference.low, against.difference.high))
        stats.append(
            (
                _gain(against, of),
                f"against {against.baseline.title}",
                f"{signed(against.difference.mean * of, 1)} of {of} {things}, interval {low} to {high}",
            )
        )
    known = comparison.task.facts
    ceiling = f"highest possible {metric}: {figure(comparison.ceilings[metric])}"
    return [
        *stats,
        (f"{known.labels:,}", "labels to choose from", ceiling),
        (duration(entry.fit_seconds), "of training", f"on {known.train_rows:,} {given.things}"),
        (size(entry.n_bytes), "of model", f"{milliseconds(entry.predict_ms)} per {one(given.things)}"),
    ]


def _gain(against: Verdict, of: int) -> str:
    """The difference in percent of the baseline; so many of the labels, or things, where that has none right."""
    if isfinite(against.relative):
        return f"{against.relative:+.0%}".replace("-", "−")
    return f"{signed(against.difference.mean * of, 1)} of {of}"


def _stat(value: str, name: str, small: str) -> Markup:
    return element(
        "li",
        element("strong", value),
        element("span", name),
        element("span", small, class_="small"),
    )


def _sides(given: ReportInput) -> str:
    known = given.comparison.task.facts
    return f"{known.train_rows:,} to train, {known.valid_rows:,} to choose, {known.test_rows:,} to judge"


def _vocabulary(given: ReportInput) -> str:
    known = given.comparison.task.facts
    if known.min_rows == 1:
        least, others = f"that have a training {one(given.things)}", "without one"
    else:
        least, others = f"with at least {known.min_rows} training {given.things}", "rarer ones"
    dropped = f"; {known.labels_dropped:,} {others} were left out" if known.labels_dropped else ""
    return f"{known.labels:,} {least}{dropped}"


def _coverage(given: ReportInput) -> str:
    known = given.comparison.task.facts
    found = f"{known.test_pairs_known:,} of {known.test_pairs:,} are among those ({known.coverage:.0%})"
    if not known.test_rows_without:
        return found
    n = known.test_rows_without
    none = f"1 test {one(given.things)} has none and does" if n == 1 else f"{n:,} test {given.things} have none and do"
    return f"{found}; {none} not count"


def _fingerprints(given: dict[str, str]) -> list[Child]:
    return [join(f"{side} ", element("code", value), " ") for side, value in given.items()]
