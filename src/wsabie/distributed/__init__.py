"""Work on many machines, by Ray; the only room that imports it, and only when it is asked for."""
