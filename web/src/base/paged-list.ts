/** Long list that loads the visible pages, one request at a time. */

export interface Page<T> {
  items: T[];
  next_cursor: string | null; // start of the next page
  total: number | null;
}

export type LoadPage<T> = (cursor: string | null, k: number, signal: AbortSignal) => Promise<Page<T>>;

export interface ListState {
  loadedCount: number; // number of loaded items
  total: number | null;
  isComplete: boolean;
  error: Error | null;
}

export interface ListOptions {
  pageSize?: number; // items of a page
  jumpSize?: number; // items of a page on the way to a distant position
  cursorAt?: (index: number) => string; // the cursor of a position; without it, pages are loaded in order
}

interface PageRequest {
  start: number;
  cursor: string | null;
  k: number;
}

export class PagedList<T> {
  readonly items: T[] = []; // sparse, if positions have cursors
  private nextCursor: string | null = null;
  private visibleRange: [number, number] = [0, 0];
  private requiredLength = 0;
  private isLoading = false;
  private state: ListState = { loadedCount: 0, total: null, isComplete: false, error: null };
  private controller = new AbortController();
  private readonly currentPages = new Set<number>(); // starts of the pages that are up to date
  private readonly listeners = new Set<() => void>();
  private readonly pageSize: number;
  private readonly jumpSize: number;
  private readonly cursorAt: ListOptions["cursorAt"];

  constructor(
    private readonly load: LoadPage<T>,
    { pageSize = 200, jumpSize = 1000, cursorAt }: ListOptions = {},
  ) {
    [this.pageSize, this.jumpSize, this.cursorAt] = [pageSize, jumpSize, cursorAt];
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get = (): ListState => this.state;

  /** Length of the list, as far as known. */
  get length(): number {
    return this.state.isComplete ? this.items.length : Math.max(this.state.total ?? 0, this.items.length);
  }

  /** Load the items of these positions; without cursors, all before them and half a page more, too. */
  require(last: number, first = last): void {
    this.visibleRange = [first, last];
    this.requiredLength = Math.max(this.requiredLength, last + 1 + this.pageSize / 2);
    void this.loadPages();
  }

  retry = (): void => {
    this.updateState({ error: null });
    void this.loadPages();
  };

  /** Reload visible items now and others when they become visible; known items stay until then. */
  refresh = (): void => {
    this.controller.abort();
    this.controller = new AbortController();
    this.currentPages.clear();
    this.isLoading = false;
    this.retry();
  };

  close(): void {
    this.controller.abort();
  }

  private findPageRequest(): PageRequest | null {
    if (!this.cursorAt) {
      const missingCount = this.requiredLength - this.items.length;
      if (this.state.isComplete || missingCount <= 0) return null;
      return { start: this.items.length, cursor: this.nextCursor, k: missingCount > this.pageSize ? this.jumpSize : this.pageSize };
    }
    const [first, last] = this.visibleRange;
    const end = this.currentPages.size ? Math.min(last + 1, this.state.total ?? 0) : last + 1;
    for (let pageStart = first - (first % this.pageSize); pageStart < end; pageStart += this.pageSize) {
      if (!this.currentPages.has(pageStart)) return { start: pageStart, cursor: this.cursorAt(pageStart), k: this.pageSize };
    }
    return null;
  }

  private async loadPages(): Promise<void> {
    if (this.isLoading) return;
    const { signal } = this.controller;
    this.isLoading = true;
    for (let request = this.findPageRequest(); request && !this.state.error && !signal.aborted; request = this.findPageRequest()) {
      try {
        const page = await this.load(request.cursor, request.k, signal);
        if (signal.aborted) return;
        this.storePage(request.start, page);
      } catch (error) {
        if (signal.aborted) return;
        this.updateState({ error: error as Error });
      }
    }
    this.isLoading = false;
  }

  private storePage(start: number, page: Page<T>): void {
    page.items.forEach((item, i) => (this.items[start + i] = item));
    const total = page.total ?? this.state.total;
    if (this.cursorAt) {
      this.currentPages.add(start);
      this.items.length = Math.min(this.items.length, total ?? Infinity);
    }
    this.nextCursor = page.next_cursor;
    this.updateState({ loadedCount: this.items.length, total, isComplete: !this.cursorAt && page.next_cursor === null });
  }

  private updateState(change: Partial<ListState>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }
}
