"""What every room stands on: errors, array types, validation, seeds, progress and execution protocols."""
