/** Keys that move the focus in a grid. */

/** Find the position that a key leads to in a grid; null if the key does not move. */
export function findTarget(key: string, position: number, columns: number, length: number, pageRows: number): number | null {
  const moves: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    PageUp: -columns * pageRows,
    PageDown: columns * pageRows,
  };
  if (!length) return null;
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  const move = moves[key];
  if (move === undefined) return null;
  const target = position + move;
  if (key.startsWith("Page")) return Math.max(0, Math.min(length - 1, target));
  return target < 0 || target >= length ? position : target;
}
