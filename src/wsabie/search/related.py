"""Labels that are related to a label, and why: what a search looks for besides ([P] section 6.6, Figure 4)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from wsabie.labels.hierarchy import spelling
from wsabie.labels.knowledge import DOWN, UP
from wsabie.labels.matching import Matched, Reached
from wsabie.search.asked import ALIKE, SameThings


class Link(NamedTuple):
    """A related label.

    Attributes
    ----------
    label : str
    score : float
        Higher is nearer; those of different makers mean different things.
    why : str
        For a person: "part of car".
    """

    label: str
    score: float
    why: str


class Related(Protocol):
    """Knows labels that are related to a label: from files, or from training."""

    def related(self, label: str, k: int = 10) -> Sequence[tuple[str, float, str]]:
        """The k most related labels with a score and a reason, best first; none where the label is not known."""
        ...


class KnownRelated:
    """What files know: parts, kinds, wholes and siblings among some labels, the fewest steps away first.

    The score is one over the number of steps: a part of it, a kind of it or a whole of it is one away, a part of a kind
    of it two. Siblings are as many steps away as labels share the parent, since what many share tells little. What is
    more than four steps away is left out.

    Parameters
    ----------
    known : Matched
        The labels and what they mean.
    called : str
        What is said to know it.
    same : SameThings or None
        For a label of which nothing is known: stands in for it, if it names the same things.
    inherit : bool
        Also parts of what is more general: a car has those of a vehicle.

    Examples
    --------
    >>> from wsabie.labels.knowledge import Knowledge
    >>> from wsabie.labels.matching import match_labels
    >>> known = Knowledge()
    >>> for pair in [("taxi", "car"), ("car", "vehicle"), ("sled", "vehicle")]:
    ...     known.relate("is-a", *pair)
    >>> known.relate("part-of", "wheel", "car")
    >>> for link in KnownRelated(match_labels(known, ["taxi", "wheel", "car", "sled"])).related("car"):
    ...     print(*link)
    wheel 1.0 known: part of car
    taxi 1.0 known: kind of car
    sled 0.5 known: a vehicle too
    """

    def __init__(
        self, known: Matched, *, called: str = "known", same: SameThings | None = None, inherit: bool = True
    ) -> None:
        self.matched, self.called, self.same, self.inherit = known, called, same, inherit
        self._known = frozenset(label for label, meant in zip(known.labels, known.concepts, strict=True) if meant)

    def related(self, label: str, k: int = 10) -> list[Link]:
        """The k labels that are fewest steps away; `label` may also be the name or id of what is no label."""
        name, stands = self._name(label)
        if name is None:
            return []
        concept = self.matched.expand(name, inherit=self.inherit).concept
        found: dict[str, tuple[int, Link]] = {}
        for reached, steps, why in self._links(concept):
            if steps > _FAR:
                continue
            meant = self.matched.concepts[reached.place] or ""
            link = Link(self.matched.labels[reached.place], 1 / steps, f"{self.called}: {why}{stands}")
            known = found.get(meant)
            if known is None or (link.score, -self._rank(meant, link.label)) > (known[1].score, -known[0]):
                found[meant] = self._rank(meant, link.label), link
        found.pop(concept, None)
        links = [link for _, link in found.values()]
        return sorted(links, key=lambda link: -link.score)[:k]

    def _name(self, label: str) -> tuple[str | None, str]:
        """Under which name something is known, and what is to be said of that."""
        if label in self._known or self.matched.knowledge.senses(label):
            return label, ""
        found = None if self.same is None else self.same.nearest(label, self._known)
        if found is None or found[1] < ALIKE:
            return None, ""
        return found[0], f" ('{label}' names the same things)"

    def _rank(self, concept: str, label: str) -> int:
        """The place of a label among the names of its concept: of several the usual one is shown."""
        names = [spelling(name) for name in self.matched.knowledge.concept(concept).names]
        spelled = spelling(label)
        return names.index(spelled) if spelled in names else len(names)

    def _links(self, concept: str) -> Iterator[tuple[Reached, int, str]]:
        """Related labels, how many steps away they are, and why."""
        known, name = self.matched.knowledge, self.matched.knowledge.name
        near = self.matched.expand(concept, inherit=self.inherit)
        away = known.reach([concept], UP) | known.reach([concept], DOWN)
        for part in near.parts:
            yield part, 1 + part.steps + away[part.via], f"part of {name(part.via)}"
        for kind in near.kinds:
            if kind.steps:
                yield kind, kind.steps, f"kind of {name(concept)}"
        for whole in known.related(concept, "part-of") if "part-of" in known.relations else ():
            for one in self.matched.expand(whole).kinds:
                yield one, 1 + one.steps, f"has the part {name(concept)}"
        if not any(kind.steps == 0 for kind in near.kinds):
            return  # what lies beside a word above all labels is far from them
        for parent in known.reach([concept], UP, 1):
            if parent != concept:
                siblings = [one for one in self.matched.expand(parent, levels=1).kinds if one.steps]
                for one in siblings:
                    yield one, len(siblings), f"a {name(parent)} too"


_FAR = 4
