/** A long list, of which the pages that are looked at are asked for, one request at a time. */

export interface Page<T> {
  items: T[];
  next_cursor: string | null; // where the next page begins
  total: number | null;
}

export type LoadPage<T> = (cursor: string | null, k: number, signal: AbortSignal) => Promise<Page<T>>;

export interface PagesState {
  known: number; // items that are here
  total: number | null;
  ended: boolean;
  error: Error | null;
}

export interface PagesOptions {
  near?: number; // items of a page
  far?: number; // items of a page on the way to a place far away
  at?: (index: number) => string; // the cursor of a place; without it, lists are walked from page to page
}

interface Gap {
  from: number;
  cursor: string | null;
  k: number;
}

export class Pages<T> {
  readonly items: T[] = []; // with holes, where a place has a cursor
  private next: string | null = null;
  private sight: [number, number] = [0, 0];
  private wanted = 0;
  private walking = false;
  private state: PagesState = { known: 0, total: null, ended: false, error: null };
  private stop = new AbortController();
  private readonly fresh = new Set<number>(); // where pages begin that need not be asked for
  private readonly listeners = new Set<() => void>();
  private readonly near: number;
  private readonly far: number;
  private readonly cursorAt: PagesOptions["at"];

  constructor(
    private readonly load: LoadPage<T>,
    { near = 200, far = 1000, at }: PagesOptions = {},
  ) {
    [this.near, this.far, this.cursorAt] = [near, far, at];
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get = (): PagesState => this.state;

  /** How long the list is, as far as is known. */
  get length(): number {
    return this.state.ended ? this.items.length : Math.max(this.state.total ?? 0, this.items.length);
  }

  /** Have the items of these places soon; of a list that is walked, those before them too, and some more. */
  need(last: number, first = last): void {
    this.sight = [first, last];
    this.wanted = Math.max(this.wanted, last + 1 + this.near / 2);
    void this.walk();
  }

  retry = (): void => {
    this.note({ error: null });
    void this.walk();
  };

  /** Ask again for what is in sight, and for the rest when it comes into sight; what is known stays until then. */
  refresh = (): void => {
    this.stop.abort();
    this.stop = new AbortController();
    this.fresh.clear();
    this.walking = false;
    this.retry();
  };

  close(): void {
    this.stop.abort();
  }

  private gap(): Gap | null {
    if (!this.cursorAt) {
      const missing = this.wanted - this.items.length;
      if (this.state.ended || missing <= 0) return null;
      return { from: this.items.length, cursor: this.next, k: missing > this.near ? this.far : this.near };
    }
    const [first, last] = this.sight;
    const end = this.fresh.size ? Math.min(last + 1, this.state.total ?? 0) : last + 1;
    for (let from = first - (first % this.near); from < end; from += this.near) {
      if (!this.fresh.has(from)) return { from, cursor: this.cursorAt(from), k: this.near };
    }
    return null;
  }

  private async walk(): Promise<void> {
    if (this.walking) return;
    const { signal } = this.stop;
    this.walking = true;
    for (let gap = this.gap(); gap && !this.state.error && !signal.aborted; gap = this.gap()) {
      try {
        const page = await this.load(gap.cursor, gap.k, signal);
        if (signal.aborted) return;
        this.put(gap.from, page);
      } catch (error) {
        if (signal.aborted) return;
        this.note({ error: error as Error });
      }
    }
    this.walking = false;
  }

  private put(from: number, page: Page<T>): void {
    page.items.forEach((one, i) => (this.items[from + i] = one));
    const total = page.total ?? this.state.total;
    if (this.cursorAt) {
      this.fresh.add(from);
      this.items.length = Math.min(this.items.length, total ?? Infinity);
    }
    this.next = page.next_cursor;
    this.note({ known: this.items.length, total, ended: !this.cursorAt && page.next_cursor === null });
  }

  private note(change: Partial<PagesState>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }
}
