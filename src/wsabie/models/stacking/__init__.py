"""Sums of models by their scores on held-out rows, and the choice of one (stacking, Wolpert 1992)."""
