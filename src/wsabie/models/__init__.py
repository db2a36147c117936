"""Models behind one protocol (`fit`, `rank`); a baseline is a role in a comparison, not a room."""
