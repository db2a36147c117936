/** A long list that comes in pages, each of which tells where the next begins. */

export interface Page<T> {
  items: T[];
  next: string | null;
  total: number | null;
}

export type LoadPage<T> = (
  cursor: string | null,
  k: number,
  signal: AbortSignal,
) => Promise<Page<T>>;

export interface PagesState {
  known: number; // items that are here, from the start
  total: number | null;
  ended: boolean;
  error: Error | null;
}

const NEAR = 200;
const FAR = 1000;

/** Walks on from page to page until the items that are looked at are there; one request at a time. */
export class Pages<T> {
  readonly items: T[] = [];
  private next: string | null = null;
  private wanted = 1;
  private walking = false;
  private state: PagesState = { known: 0, total: null, ended: false, error: null };
  private readonly stop = new AbortController();
  private readonly listeners = new Set<() => void>();

  constructor(
    private readonly load: LoadPage<T>,
    private readonly near = NEAR,
    private readonly far = FAR,
  ) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  get = (): PagesState => this.state;

  /** How long the list is, as far as is known. */
  get length(): number {
    return this.state.ended ? this.items.length : Math.max(this.state.total ?? 0, this.items.length);
  }

  /** Have the items up to this one there soon, and some more. */
  need(index: number): void {
    this.wanted = Math.max(this.wanted, index + 1 + this.near / 2);
    void this.walk();
  }

  retry = (): void => {
    this.note({ error: null });
    void this.walk();
  };

  close(): void {
    this.stop.abort();
  }

  private async walk(): Promise<void> {
    if (this.walking) return;
    this.walking = true;
    while (!this.state.ended && !this.state.error && !this.stop.signal.aborted && this.items.length < this.wanted) {
      const k = this.wanted - this.items.length > this.near ? this.far : this.near;
      try {
        const page = await this.load(this.next, k, this.stop.signal);
        this.items.push(...page.items);
        this.next = page.next;
        this.note({
          known: this.items.length,
          total: page.total ?? this.state.total,
          ended: page.next === null,
        });
      } catch (error) {
        if (!this.stop.signal.aborted) this.note({ error: error as Error });
      }
    }
    this.walking = false;
  }

  private note(change: Partial<PagesState>): void {
    this.state = { ...this.state, ...change };
    this.listeners.forEach((listener) => listener());
  }
}
