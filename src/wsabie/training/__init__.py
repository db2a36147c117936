"""Training of a space: losses, targets, threads, schedule, trainer; imports no search or evaluation."""
