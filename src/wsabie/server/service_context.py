"""State that the application shares between requests."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date

from wsabie.collection.folder.collection import Collection
from wsabie.collection.search.query_parsing import LabelKnowledge
from wsabie.server.limits.request_limits import ServiceLimits
from wsabie.server.metrics import Metrics
from wsabie.server.model_holder import ModelHolder
from wsabie.server.tokens import Token


@dataclass
class ServiceContext:
    """State that the application shares between requests.

    Attributes
    ----------
    limits : ServiceLimits
    tokens : iterable of Token or None
        None: everybody may do everything; only for a service on the loopback address.
    model : ModelHolder
    collection : Collection or None
    label_knowledge : LabelKnowledge or None
        Word knowledge from files, for searching its labels.
    metrics : Metrics
    day : date
        Latest date so far: a clock that is set back makes no token valid again.
    """

    limits: ServiceLimits
    tokens: Iterable[Token] | None
    model: ModelHolder
    collection: Collection | None = None
    label_knowledge: LabelKnowledge | None = None
    metrics: Metrics = field(default_factory=Metrics)
    day: date = date.min
