/**
 * Queue of decisions: sent in order, stored in the browser until they are answered, retried while the service is
 * unreachable, and undone in order.
 */

import type { DecisionResult, ReviewDecision } from "../api/types";

export interface PendingDecisions {
  id: string;
  kind: "decide";
  decisions: ReviewDecision[];
}

export interface PendingAcceptance {
  id: string;
  kind: "above";
  label: string | null;
  probability: number;
}

export interface PendingUndo {
  id: string;
  kind: "undo";
  changeId: string; // the change that it undoes; empty for an entry of another request
  entry: number | null; // of the journal, once known
  description: string; // what is undone, for people
}

export type PendingChange = PendingDecisions | PendingAcceptance | PendingUndo;

export interface FailedChange {
  change: PendingChange;
  reason: string;
}

export interface QueueState {
  pending: readonly PendingChange[];
  failed: readonly FailedChange[];
  delayReason: string | null; // the reason for waiting, if any
}

/** Functions that send changes to the service. */
export interface Sender {
  decide: (decisions: ReviewDecision[]) => Promise<DecisionResult>;
  acceptAbove: (change: PendingAcceptance) => Promise<DecisionResult>;
  undo: (entry: number) => Promise<unknown>;
  isTransient: (error: unknown) => boolean; // true if the same request may succeed later
}

/** Storage of pending changes. */
export interface ChangeStorage {
  read: () => PendingChange[];
  write: (changes: readonly PendingChange[]) => void;
}

export interface QueueListeners {
  onChange: () => void;
  onAnswer?: (change: PendingChange, answer: DecisionResult | null) => void;
  onFailure?: (change: PendingChange, reason: string) => void;
}

const RETRY_DELAYS = [500, 1000, 2000, 4000, 8000, 15000];

export class DecisionQueue {
  private pending: PendingChange[];
  private failed: FailedChange[] = [];
  private delayReason: string | null = null;
  private activeChangeId: string | null = null;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private answers: { id: string; entry: number | null }[] = []; // since the page was opened, latest last
  private snapshot: QueueState;

  constructor(
    private readonly sender: Sender,
    private readonly storage: ChangeStorage,
    private readonly listeners: QueueListeners,
    private readonly newId: () => string,
  ) {
    this.pending = storage.read();
    this.snapshot = this.buildState();
    if (this.pending.length) this.timer = setTimeout(() => void this.sendPending(), 0);
  }

  getState = (): QueueState => this.snapshot;

  /** True if a change about this item is pending. */
  hasPending(item: number): boolean {
    return this.pending.some((s) => s.kind !== "decide" || s.decisions.some((d) => d.item === item));
  }

  decide(decisions: ReviewDecision[]): string {
    return this.add({ id: this.newId(), kind: "decide", decisions });
  }

  acceptAbove(label: string | null, probability: number): string {
    return this.add({ id: this.newId(), kind: "above", label, probability });
  }

  /** Revert a change: remove it if it was not sent, else undo it by its journal entry. */
  revert(id: string, description: string): void {
    const position = this.pending.findIndex((s) => s.id === id);
    if (position >= 0 && this.activeChangeId !== id) {
      this.pending.splice(position, 1);
      this.publish();
      return;
    }
    const answer = this.answers.find((d) => d.id === id);
    if (answer && answer.entry === null) return; // it had changed nothing
    if (position < 0 && !answer) return; // it was refused
    this.add({ id: this.newId(), kind: "undo", changeId: id, entry: answer?.entry ?? null, description });
  }

  /** Undo an entry of the journal of another request; return the id of the change. */
  undoEntry(entry: number, description: string): string {
    return this.add({ id: this.newId(), kind: "undo", changeId: "", entry, description });
  }

  /** Return the journal entry of a change that was answered since the page was opened. */
  findEntry(id: string): number | null {
    return this.answers.find((d) => d.id === id)?.entry ?? null;
  }

  /** Take over the changes of a closed page. */
  adopt(changes: readonly PendingChange[]): void {
    const ids = new Set(this.pending.map((s) => s.id));
    this.pending.unshift(...changes.filter((s) => !ids.has(s.id)));
    this.publish();
    void this.sendPending();
  }

  /** Send pending changes now, after a new connection or token. */
  retry = (): void => {
    this.attempts = 0;
    void this.sendPending();
  };

  retryChange(id: string): void {
    const failure = this.failed.find((r) => r.change.id === id);
    if (!failure) return;
    this.failed = this.failed.filter((r) => r !== failure);
    this.add(failure.change);
  }

  discard(id: string): void {
    this.failed = this.failed.filter((r) => r.change.id !== id);
    this.publish();
  }

  private add(change: PendingChange): string {
    this.pending.push(change);
    this.publish();
    void this.sendPending();
    return change.id;
  }

  private async sendPending(): Promise<void> {
    if (this.activeChangeId !== null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.pending.length) {
      const change = this.pending[0]!;
      this.activeChangeId = change.id;
      try {
        const result = await this.send(change);
        this.recordAnswer(change, result);
      } catch (error) {
        this.activeChangeId = null;
        if (this.sender.isTransient(error)) {
          this.scheduleRetry((error as Error).message);
          return;
        }
        this.recordFailure(change, (error as Error).message);
      }
    }
    this.publish();
  }

  private async send(change: PendingChange): Promise<DecisionResult | null> {
    if (change.kind === "decide") return this.sender.decide(change.decisions);
    if (change.kind === "above") return this.sender.acceptAbove(change);
    if (change.entry !== null) await this.sender.undo(change.entry);
    return null;
  }

  private recordAnswer(change: PendingChange, result: DecisionResult | null): void {
    this.activeChangeId = null;
    this.attempts = 0;
    this.delayReason = null;
    this.removeChange(change);
    if (change.kind !== "undo") {
      const entry = result?.entry ?? null;
      this.answers.push({ id: change.id, entry });
      this.pending = this.pending.map((s) => (s.kind === "undo" && s.changeId === change.id ? { ...s, entry } : s));
    }
    this.publish();
    this.listeners.onAnswer?.(change, result);
  }

  private recordFailure(change: PendingChange, reason: string): void {
    this.removeChange(change);
    this.pending = this.pending.filter((s) => !(s.kind === "undo" && s.changeId === change.id));
    this.failed = [...this.failed, { change, reason }];
    this.publish();
    this.listeners.onFailure?.(change, reason);
  }

  private scheduleRetry(reason: string): void {
    this.delayReason = reason;
    const delay = RETRY_DELAYS[Math.min(this.attempts, RETRY_DELAYS.length - 1)]!;
    this.attempts += 1;
    this.publish();
    this.timer = setTimeout(() => void this.sendPending(), delay);
  }

  private removeChange(change: PendingChange): void {
    this.pending = this.pending.filter((s) => s.id !== change.id);
  }

  private buildState(): QueueState {
    return { pending: [...this.pending], failed: [...this.failed], delayReason: this.pending.length ? this.delayReason : null };
  }

  private publish(): void {
    this.storage.write(this.pending);
    this.snapshot = this.buildState();
    this.listeners.onChange();
  }
}
