/**
 * Decisions on their way to the service: one after the other, kept in the browser until they are answered, tried again
 * while the service cannot be reached, and taken back in the order in which they were made.
 */

import type { DecisionResult, DecisionRequest } from "../api/types";

export interface Decide {
  id: string;
  kind: "decide";
  decisions: DecisionRequest[];
}

export interface Above {
  id: string;
  kind: "above";
  label: string | null;
  probability: number;
}

export interface Undo {
  id: string;
  kind: "undo";
  of: string; // the step that it takes back; empty for an entry that no step has made
  entry: number | null; // of the journal, once it is known
  told: string; // what that was, for people
}

export type Step = Decide | Above | Undo;

export interface Refused {
  step: Step;
  reason: string;
}

export interface QueueState {
  waiting: readonly Step[];
  refused: readonly Refused[];
  trouble: string | null; // why it waits, where it does
}

/** How steps reach the service. */
export interface Sender {
  decide: (decisions: DecisionRequest[]) => Promise<DecisionResult>;
  above: (step: Above) => Promise<DecisionResult>;
  undo: (entry: number) => Promise<unknown>;
  passing: (error: unknown) => boolean; // whether the same may succeed later
}

/** Where steps are kept while they wait. */
export interface Keeper {
  read: () => Step[];
  write: (steps: readonly Step[]) => void;
}

export interface Events {
  changed: () => void;
  answered?: (step: Step, answer: DecisionResult | null) => void;
  refused?: (step: Step, reason: string) => void;
}

const WAITS = [500, 1000, 2000, 4000, 8000, 15000];

export class DecisionQueue {
  private waiting: Step[];
  private refused: Refused[] = [];
  private trouble: string | null = null;
  private sending: string | null = null;
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private done: { id: string; entry: number | null }[] = []; // answered since the page was opened, latest last
  private snapshot: QueueState;

  constructor(
    private readonly sender: Sender,
    private readonly keeper: Keeper,
    private readonly events: Events,
    private readonly newId: () => string,
  ) {
    this.waiting = keeper.read();
    this.snapshot = this.seen();
    if (this.waiting.length) this.timer = setTimeout(() => void this.pump(), 0);
  }

  state = (): QueueState => this.snapshot;

  /** Whether something about this item is on its way. */
  touches(item: number): boolean {
    return this.waiting.some((s) => s.kind !== "decide" || s.decisions.some((d) => d.item === item));
  }

  decide(decisions: DecisionRequest[]): string {
    return this.add({ id: this.newId(), kind: "decide", decisions });
  }

  above(label: string | null, probability: number): string {
    return this.add({ id: this.newId(), kind: "above", label, probability });
  }

  /** Take back a step: it is never sent if it has not been, and undone by the journal if it has. */
  takeBack(id: string, told: string): void {
    const at = this.waiting.findIndex((s) => s.id === id);
    if (at >= 0 && this.sending !== id) {
      this.waiting.splice(at, 1);
      this.note();
      return;
    }
    const answered = this.done.find((d) => d.id === id);
    if (answered && answered.entry === null) return; // it had changed nothing
    if (at < 0 && !answered) return; // it was refused
    this.add({ id: this.newId(), kind: "undo", of: id, entry: answered?.entry ?? null, told });
  }

  /** Undo an entry of the journal that another request has made; the name of the step. */
  undoEntry(entry: number, told: string): string {
    return this.add({ id: this.newId(), kind: "undo", of: "", entry, told });
  }

  /** The journal's entry of a step that was answered since the page was opened. */
  entryOf(id: string): number | null {
    return this.done.find((d) => d.id === id)?.entry ?? null;
  }

  /** Take over steps that another page has left behind. */
  adopt(steps: readonly Step[]): void {
    const known = new Set(this.waiting.map((s) => s.id));
    this.waiting.unshift(...steps.filter((s) => !known.has(s.id)));
    this.note();
    void this.pump();
  }

  /** Try what waits at once: the network is back, or a token is given. */
  retry = (): void => {
    this.tries = 0;
    void this.pump();
  };

  tryAgain(id: string): void {
    const found = this.refused.find((r) => r.step.id === id);
    if (!found) return;
    this.refused = this.refused.filter((r) => r !== found);
    this.add(found.step);
  }

  forget(id: string): void {
    this.refused = this.refused.filter((r) => r.step.id !== id);
    this.note();
  }

  private add(step: Step): string {
    this.waiting.push(step);
    this.note();
    void this.pump();
    return step.id;
  }

  private async pump(): Promise<void> {
    if (this.sending !== null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    while (this.waiting.length) {
      const step = this.waiting[0]!;
      this.sending = step.id;
      try {
        const answer = await this.send(step);
        this.answered(step, answer);
      } catch (error) {
        this.sending = null;
        if (this.sender.passing(error)) {
          this.later((error as Error).message);
          return;
        }
        this.refuse(step, (error as Error).message);
      }
    }
    this.note();
  }

  private async send(step: Step): Promise<DecisionResult | null> {
    if (step.kind === "decide") return this.sender.decide(step.decisions);
    if (step.kind === "above") return this.sender.above(step);
    if (step.entry !== null) await this.sender.undo(step.entry);
    return null;
  }

  private answered(step: Step, answer: DecisionResult | null): void {
    this.sending = null;
    this.tries = 0;
    this.trouble = null;
    this.drop(step);
    if (step.kind !== "undo") {
      const entry = answer?.entry ?? null;
      this.done.push({ id: step.id, entry });
      this.waiting = this.waiting.map((s) => (s.kind === "undo" && s.of === step.id ? { ...s, entry } : s));
    }
    this.note();
    this.events.answered?.(step, answer);
  }

  private refuse(step: Step, reason: string): void {
    this.drop(step);
    this.waiting = this.waiting.filter((s) => !(s.kind === "undo" && s.of === step.id));
    this.refused = [...this.refused, { step, reason }];
    this.note();
    this.events.refused?.(step, reason);
  }

  private later(reason: string): void {
    this.trouble = reason;
    const wait = WAITS[Math.min(this.tries, WAITS.length - 1)]!;
    this.tries += 1;
    this.note();
    this.timer = setTimeout(() => void this.pump(), wait);
  }

  private drop(step: Step): void {
    this.waiting = this.waiting.filter((s) => s.id !== step.id);
  }

  private seen(): QueueState {
    return { waiting: [...this.waiting], refused: [...this.refused], trouble: this.waiting.length ? this.trouble : null };
  }

  private note(): void {
    this.keeper.write(this.waiting);
    this.snapshot = this.seen();
    this.events.changed();
  }
}
