"""Work on many machines by Ray; only this package imports Ray, and only on request."""
