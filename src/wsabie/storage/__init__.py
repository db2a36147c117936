"""Files that survive kills, full disks and bit rot: atomic writes, model folders, checkpoints, lists of rejects."""
