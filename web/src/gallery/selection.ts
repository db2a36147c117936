/** Selection in a grid as on desktops: click, Shift for a range, Ctrl or Cmd to add. */

export interface Selection {
  ids: ReadonlySet<number>; // ids of items
  anchor: number; // position in the list at which a range begins
  focus: number; // position of the keyboard focus
}

export const EMPTY_SELECTION: Selection = { ids: new Set(), anchor: 0, focus: 0 };

type IdAt = (position: number) => number | undefined;

export function selectByClick(
  selection: Selection,
  position: number,
  idAt: IdAt,
  keys: { range: boolean; additive: boolean },
): Selection {
  if (keys.range) return { ids: addRange(keys.additive ? selection.ids : [], selection.anchor, position, idAt), anchor: selection.anchor, focus: position };
  if (keys.additive) return toggleItem(selection, position, idAt);
  const id = idAt(position);
  return { ids: new Set(id === undefined ? [] : [id]), anchor: position, focus: position };
}

export function toggleItem(selection: Selection, position: number, idAt: IdAt): Selection {
  const ids = new Set(selection.ids);
  const id = idAt(position);
  if (id !== undefined && !ids.delete(id)) ids.add(id);
  return { ids, anchor: position, focus: position };
}

/** Move the keyboard focus; `extend` (Shift) selects a range. */
export function moveFocus(selection: Selection, position: number, idAt: IdAt, extend: boolean): Selection {
  if (!extend) return { ...selection, focus: position, anchor: position };
  return { ids: addRange([], selection.anchor, position, idAt), anchor: selection.anchor, focus: position };
}

export function selectAll(selection: Selection, length: number, idAt: IdAt): Selection {
  return { ...selection, ids: addRange([], 0, length - 1, idAt) };
}

function addRange(initial: Iterable<number>, start: number, end: number, idAt: IdAt): Set<number> {
  const ids = new Set(initial);
  for (let position = Math.min(start, end); position <= Math.max(start, end); position += 1) {
    const id = idAt(position);
    if (id !== undefined) ids.add(id);
  }
  return ids;
}
