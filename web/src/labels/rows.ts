/** The list of labels, of any length: the parts of it that are looked at are asked for. */

import { useEffect, useMemo, useSyncExternalStore } from "react";
import { type LabelRow, labelApi, type RowQuery } from "../api/labels";

export type LoadRows = (after: number, k: number) => Promise<{ total: number; labels: LabelRow[] }>;

interface RowsState {
  total: number | null;
  error: Error | null;
  turn: number; // goes up with everything that comes
}

export class Rows {
  private readonly parts = new Map<number, LabelRow[]>();
  private readonly asked = new Set<number>();
  private readonly listeners = new Set<() => void>();
  private state: RowsState = { total: null, error: null, turn: 0 };
  private seen: [number, number] = [0, 0];
  private round = 0;

  constructor(
    private readonly load: LoadRows,
    private readonly size = 200,
  ) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get = (): RowsState => this.state;

  at(index: number): LabelRow | undefined {
    return this.parts.get(Math.floor(index / this.size))?.[index % this.size];
  }

  /** Where a label stands, if that is known. */
  indexOf(id: number): number {
    for (const [part, rows] of this.parts) {
      const i = rows.findIndex((row) => row.id === id);
      if (i >= 0) return part * this.size + i;
    }
    return -1;
  }

  need = (first: number, last: number): void => {
    this.seen = [first, last];
    for (let part = Math.floor(first / this.size); part * this.size <= last; part += 1) {
      if (!this.asked.has(part)) void this.fetch(part);
    }
  };

  /** Ask again for what is in sight, and for the rest when it comes into sight; what is known stays until then. */
  refresh = (): void => {
    this.round += 1;
    this.asked.clear();
    this.need(...this.seen);
  };

  private async fetch(part: number): Promise<void> {
    const round = this.round;
    this.asked.add(part);
    try {
      const { total, labels } = await this.load(part * this.size, this.size);
      if (round !== this.round) return;
      this.parts.set(part, labels);
      this.note({ total, error: null });
    } catch (error) {
      if (round !== this.round) return;
      this.asked.delete(part);
      this.note({ error: error as Error });
    }
  }

  private note(change: Partial<RowsState>): void {
    this.state = { ...this.state, ...change, turn: this.state.turn + 1 };
    this.listeners.forEach((listener) => listener());
  }
}

/** The rows of a question; asked again when `turn` changes. */
export function useRows(asked: RowQuery, turn: number): { rows: Rows; state: RowsState; key: string } {
  const key = JSON.stringify(asked);
  const rows = useMemo(
    () => new Rows((after, k) => labelApi.rows(JSON.parse(key) as RowQuery, after, k)),
    [key],
  );
  const state = useSyncExternalStore(rows.subscribe, rows.get);
  useEffect(() => rows.refresh(), [rows, turn]);
  return { rows, state, key };
}
