"""The tables and figures of the papers as declarative records, and the engine that runs them."""
