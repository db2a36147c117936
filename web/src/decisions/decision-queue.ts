/**
 * Queue of decisions: sent in order, stored in the browser until they are answered, retried while the service is
 * unreachable, and undone in order.
 */

import type { DecisionResult, DecisionRequest } from "../api/types";

export interface DecideStep {
  id: string;
  kind: "decide";
  decisions: DecisionRequest[];
}

export interface AcceptStep {
  id: string;
  kind: "above";
  label: string | null;
  probability: number;
}

export interface UndoStep {
  id: string;
  kind: "undo";
  stepId: string; // the step that it undoes; empty for an entry of another request
  entry: number | null; // of the journal, once known
  description: string; // what is undone, for people
}

export type Step = DecideStep | AcceptStep | UndoStep;

export interface FailedStep {
  step: Step;
  reason: string;
}

export interface QueueState {
  pending: readonly Step[];
  failed: readonly FailedStep[];
  delayReason: string | null; // the reason for waiting, if any
}

/** Functions that send steps to the service. */
export interface Sender {
  decide: (decisions: DecisionRequest[]) => Promise<DecisionResult>;
  acceptAbove: (step: AcceptStep) => Promise<DecisionResult>;
  undo: (entry: number) => Promise<unknown>;
  isTransient: (error: unknown) => boolean; // true if the same request may succeed later
}

/** Storage of pending steps. */
export interface StepStorage {
  read: () => Step[];
  write: (steps: readonly Step[]) => void;
}

export interface QueueListeners {
  onChange: () => void;
  onAnswer?: (step: Step, answer: DecisionResult | null) => void;
  onFailure?: (step: Step, reason: string) => void;
}

const RETRY_DELAYS = [500, 1000, 2000, 4000, 8000, 15000];

export class DecisionQueue {
  private pending: Step[];
  private failed: FailedStep[] = [];
  private delayReason: string | null = null;
  private activeStepId: string | null = null;
  private attempts = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private answers: { id: string; entry: number | null }[] = []; // since the page was opened, latest last
  private snapshot: QueueState;

  constructor(
    private readonly sender: Sender,
    private readonly storage: StepStorage,
    private readonly listeners: QueueListeners,
    private readonly newId: () => string,
  ) {
    this.pending = storage.read();
    this.snapshot = this.buildState();
    if (this.pending.length) this.timer = setTimeout(() => void this.sendPending(), 0);
  }

  getState = (): QueueState => this.snapshot;

  /** True if a step about this item is pending. */
  hasPending(item: number): boolean {
    return this.pending.some((s) => s.kind !== "decide" || s.decisions.some((d) => d.item === item));
  }

  decide(decisions: DecisionRequest[]): string {
    return this.add({ id: this.newId(), kind: "decide", decisions });
  }

  acceptAbove(label: string | null, probability: number): string {
    return this.add({ id: this.newId(), kind: "above", label, probability });
  }

  /** Revert a step: remove it if it was not sent, else undo it by its journal entry. */
  revert(id: string, description: string): void {
    const position = this.pending.findIndex((s) => s.id === id);
    if (position >= 0 && this.activeStepId !== id) {
      this.pending.splice(position, 1);
      this.publish();
      return;
    }
    const answer = this.answers.find((d) => d.id === id);
    if (answer && answer.entry === null) return; // it had changed nothing
    if (position < 0 && !answer) return; // it was refused
    this.add({ id: this.newId(), kind: "undo", stepId: id, entry: answer?.entry ?? null, description });
  }

  /** Undo an entry of the journal of another request; return the id of the step. */
  undoEntry(entry: number, description: string): string {
    return this.add({ id: this.newId(), kind: "undo", stepId: "", entry, description });
  }

  /** Return the journal entry of a step that was answered since the page was opened. */
  findEntry(id: string): number | null {
    return this.answers.find((d) => d.id === id)?.entry ?? null;
  }

  /** Take over the steps of a closed page. */
  adopt(steps: readonly Step[]): void {
    const ids = new Set(this.pending.map((s) => s.id));
    this.pending.unshift(...steps.filter((s) => !ids.has(s.id)));
    this.publish();
    void this.sendPending();
  }

  /** Send pending steps now, after a new connection or token. */
  retry = (): void => {
    this.attempts = 0;
    void this.sendPending();
  };

  retryStep(id: string): void {
    const failure = this.failed.find((r) => r.step.id === id);
    if (!failure) return;
    this.failed = this.failed.filter((r) => r !== failure);
    this.add(failure.step);
  }

  discard(id: string): void {
    this.failed = this.failed.filter((r) => r.step.id !== id);
    this.publish();
  }

  private add(step: Step): string {
    this.pending.push(step);
    this.publish();
    void this.sendPending();
    return step.id;
  }

  private async sendPending(): Promise<void> {
    if (this.activeStepId !== null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.pending.length) {
      const step = this.pending[0]!;
      this.activeStepId = step.id;
      try {
        const result = await this.send(step);
        this.recordAnswer(step, result);
      } catch (error) {
        this.activeStepId = null;
        if (this.sender.isTransient(error)) {
          this.scheduleRetry((error as Error).message);
          return;
        }
        this.recordFailure(step, (error as Error).message);
      }
    }
    this.publish();
  }

  private async send(step: Step): Promise<DecisionResult | null> {
    if (step.kind === "decide") return this.sender.decide(step.decisions);
    if (step.kind === "above") return this.sender.acceptAbove(step);
    if (step.entry !== null) await this.sender.undo(step.entry);
    return null;
  }

  private recordAnswer(step: Step, result: DecisionResult | null): void {
    this.activeStepId = null;
    this.attempts = 0;
    this.delayReason = null;
    this.removeStep(step);
    if (step.kind !== "undo") {
      const entry = result?.entry ?? null;
      this.answers.push({ id: step.id, entry });
      this.pending = this.pending.map((s) => (s.kind === "undo" && s.stepId === step.id ? { ...s, entry } : s));
    }
    this.publish();
    this.listeners.onAnswer?.(step, result);
  }

  private recordFailure(step: Step, reason: string): void {
    this.removeStep(step);
    this.pending = this.pending.filter((s) => !(s.kind === "undo" && s.stepId === step.id));
    this.failed = [...this.failed, { step, reason }];
    this.publish();
    this.listeners.onFailure?.(step, reason);
  }

  private scheduleRetry(reason: string): void {
    this.delayReason = reason;
    const delay = RETRY_DELAYS[Math.min(this.attempts, RETRY_DELAYS.length - 1)]!;
    this.attempts += 1;
    this.publish();
    this.timer = setTimeout(() => void this.sendPending(), delay);
  }

  private removeStep(step: Step): void {
    this.pending = this.pending.filter((s) => s.id !== step.id);
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
