"""XMP, which photo programs read: sidecars beside pictures, or packets inside them.

Tags that are there already and that the catalogue says nothing of stay; those that are rejected in it are taken away.
"""
