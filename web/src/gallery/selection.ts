/** What is selected in a grid, as desktops do it: click, Shift for a range, Ctrl or Cmd for one more. */

export interface Selection {
  chosen: ReadonlySet<number>; // numbers of items
  anchor: number; // where a range begins: a position in the list
  focus: number; // where the keys are
}

export const NOTHING: Selection = { chosen: new Set(), anchor: 0, focus: 0 };

type IdAt = (position: number) => number | undefined;

export function clicked(
  old: Selection,
  at: number,
  idAt: IdAt,
  keys: { range: boolean; more: boolean },
): Selection {
  if (keys.range) return { chosen: ranged(keys.more ? old.chosen : [], old.anchor, at, idAt), anchor: old.anchor, focus: at };
  if (keys.more) return toggled(old, at, idAt);
  const id = idAt(at);
  return { chosen: new Set(id === undefined ? [] : [id]), anchor: at, focus: at };
}

export function toggled(old: Selection, at: number, idAt: IdAt): Selection {
  const chosen = new Set(old.chosen);
  const id = idAt(at);
  if (id !== undefined && !chosen.delete(id)) chosen.add(id);
  return { chosen, anchor: at, focus: at };
}

/** The keys move: `extend` where Shift is held. */
export function moved(old: Selection, to: number, idAt: IdAt, extend: boolean): Selection {
  if (!extend) return { ...old, focus: to, anchor: to };
  return { chosen: ranged([], old.anchor, to, idAt), anchor: old.anchor, focus: to };
}

export function everything(old: Selection, length: number, idAt: IdAt): Selection {
  return { ...old, chosen: ranged([], 0, length - 1, idAt) };
}

function ranged(before: Iterable<number>, from: number, to: number, idAt: IdAt): Set<number> {
  const chosen = new Set(before);
  for (let at = Math.min(from, to); at <= Math.max(from, to); at += 1) {
    const id = idAt(at);
    if (id !== undefined) chosen.add(id);
  }
  return chosen;
}

/** Where a key goes in a grid of so many columns; null: this key moves nothing. */
export function target(key: string, at: number, columns: number, length: number, page: number): number | null {
  const moves: Record<string, number> = {
    ArrowLeft: -1,
    ArrowRight: 1,
    ArrowUp: -columns,
    ArrowDown: columns,
    PageUp: -columns * page,
    PageDown: columns * page,
  };
  if (!length) return null;
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  const move = moves[key];
  if (move === undefined) return null;
  const to = at + move;
  if (key.startsWith("Page")) return Math.max(0, Math.min(length - 1, to));
  return to < 0 || to >= length ? at : to;
}
