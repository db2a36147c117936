"""Files that survive kills, full disks and bit rot: atomic writes, model folders, lists of rejects."""
