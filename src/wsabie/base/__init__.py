"""What every room stands on: errors, array types, validation, progress and execution protocols."""
