"""Print the OpenAPI document from which `make types` writes the types of the pages.

It is that of a service with a collection, without what types do not need: titles, and the errors of each route.
"""

import json
import sys
from typing import Any

from wsabie.server.app import make_api


def simplify_schema(value: Any) -> Any:
    """Return a part of the document without titles."""
    if isinstance(value, list):
        return [simplify_schema(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: simplify_schema(part) for name, part in value.items() if name != "title" or isinstance(part, dict)}


def main() -> None:
    """Print the document."""
    document = make_api(has_collection=True).openapi()
    for path in document["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            operation["responses"] = {status: responses[status] for status in responses if status.startswith("2")}
    json.dump(simplify_schema(document) | {"info": document["info"]}, sys.stdout, ensure_ascii=False)


if __name__ == "__main__":
    main()
