"""Foundations of every package: errors, array types, validation, progress and execution protocols."""
