"""How a space learns: losses, targets, threads, schedule, trainer. Imports neither search nor evaluation."""
