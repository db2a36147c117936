/** The one queue of this page, what was done on any of its views so far, and taking it back. */

import { api, ApiError } from "../api/client";
import type { DecisionResult, DecisionRequest } from "../api/types";
import type { Verdict } from "../api/client";
import { count } from "../base/format";
import { store, useStore } from "../base/store";
import { keyOf } from "../item/key";
import { say } from "../base/saying";
import { orphans, pageKeeper } from "./keeper";
import { mayWrite } from "./may";
import { type QueueState, DecisionQueue, type Step } from "./queue";

type Overlay = ReadonlyMap<string, Verdict | null>;

/** What was decided on this page, over what the service said before. */
export const overlay = store<Overlay>(new Map());
/** Goes up when the service has answered, so that counts can be asked again. */
export const settledCount = store(0);
const queueState = store<QueueState>({ waiting: [], refused: [], trouble: null });

interface Made {
  by: string | number; // a step of the queue, or an entry of the journal
  told: string;
  item: number | null; // where it is seen
  before: [string, Verdict | null | undefined][]; // undefined: nothing was decided on this page
  after: () => void; // when the service has taken it back, or refused to
}
const made: Made[] = []; // latest last
const takenBack = new Map<string, Made>(); // entries, by the steps that undo them
const nothing = (): void => undefined;

function onlyReads(): boolean {
  if (!mayWrite.get()) say("You may only look at this collection.");
  return !mayWrite.get();
}

function fresh(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join("");
}

function pageName(): string {
  try {
    const known = sessionStorage.getItem("wsabie.page");
    if (known) return known;
    const name = fresh();
    sessionStorage.setItem("wsabie.page", name);
    return name;
  } catch {
    return fresh();
  }
}

/** A step whose answer was lost, because the page was left meanwhile, is sent again and finds its work done. */
function undoneBefore(error: unknown): null {
  if (error instanceof ApiError && error.message.includes("is undone already")) return null;
  throw error;
}

const page = pageName();
const keeper = pageKeeper(page, localStorage);
export const queue: DecisionQueue = new DecisionQueue(
  {
    decide: api.decide,
    above: (step) => api.decideAbove(step.label, step.probability),
    undo: (entry) => api.undo(entry).catch(undoneBefore),
    passing: (error) => error instanceof ApiError && error.passing,
  },
  keeper,
  { changed: () => queueState.set(queue.state()), answered, refused },
  fresh,
);

export function useQueue(): QueueState {
  return useStore(queueState);
}

/** Decide now and send it by and by; `told` is what undoing it would say. */
export function decide(decisions: DecisionRequest[], told: string): void {
  if (!decisions.length || onlyReads()) return;
  const before = decisions.map((d): Made["before"][number] => {
    const key = keyOf(d.item, d.label);
    return [key, overlay.get().has(key) ? overlay.get().get(key)! : undefined];
  });
  overlay.set((old) => {
    const next = new Map(old);
    for (const d of decisions) if (!d.region) next.set(keyOf(d.item, d.label), d.state);
    return next;
  });
  made.push({ by: queue.decide(decisions), told, item: decisions[0]!.item, before, after: nothing });
}

/** Accept every suggestion at or above a probability. */
export function decideAbove(label: string | null, probability: number, told: string): void {
  if (onlyReads()) return;
  made.push({ by: queue.above(label, probability), told, item: null, before: [], after: nothing });
}

/** Something else was done, and the journal has it: it is taken back in its turn, and `after` called then. */
export function remember(entry: number, told: string, after: () => void): void {
  made.push({ by: entry, told, item: null, before: [], after });
}

/** Take back what was done last, on whatever view; the item that it was about. */
export function undo(): number | null {
  if (onlyReads()) return null;
  const last = made.pop();
  if (!last) {
    say("Nothing to undo on this page; the history is under Status.");
    return null;
  }
  takeBack(last);
  return last.item;
}

/** Take back an entry of the journal, out of its turn, whoever has made it. */
export function undoEntry(entry: number, told: string, after: () => void): void {
  if (onlyReads()) return;
  const at = made.findIndex((m) => m.by === entry || (typeof m.by === "string" && queue.entryOf(m.by) === entry));
  const before = at >= 0 ? made.splice(at, 1)[0]!.before : [];
  takeBack({ by: entry, told, item: null, before, after });
}

function takeBack(one: Made): void {
  overlay.set((old) => {
    const next = new Map(old);
    for (const [key, state] of one.before) {
      if (state === undefined) next.delete(key);
      else next.set(key, state);
    }
    return next;
  });
  if (typeof one.by === "number") {
    takenBack.set(queue.undoEntry(one.by, one.told), one);
    return;
  }
  queue.takeBack(one.by, one.told);
  say(`Taken back: ${one.told}`);
}

/** What the service says of an item now counts, but for what is on its way. */
export function forgetOverlay(item: number): void {
  const start = `${item} `;
  if (![...overlay.get().keys()].some((key) => key.startsWith(start))) return;
  overlay.set((old) => new Map([...old].filter(([key]) => !key.startsWith(start))));
}

function answered(step: Step, answer: DecisionResult | null): void {
  settledCount.set((n) => n + 1);
  const back = takenBack.get(step.id);
  if (back) {
    takenBack.delete(step.id);
    say(`Taken back: ${back.told}`);
    back.after();
  }
  if (step.kind === "above" && answer) say(`Accepted ${count(answer.added + answer.changed, "suggestion")}.`);
}

function refused(step: Step, reason: string): void {
  if (step.kind === "decide") step.decisions.forEach((d) => forgetOverlay(d.item));
  const at = made.findIndex((m) => m.by === step.id);
  if (at >= 0) made.splice(at, 1);
  takenBack.get(step.id)?.after();
  say(`Not saved: ${reason}`);
}

export function startDesk(): void {
  queueState.set(queue.state());
  window.addEventListener("online", queue.retry);
  window.addEventListener("beforeunload", (event) => {
    if (queue.state().waiting.length) event.preventDefault();
  });
  const adopt = (): void => {
    keeper.write(queue.state().waiting); // says that this page lives
    const left = orphans(page, localStorage);
    if (left.length) queue.adopt(left);
  };
  adopt();
  setInterval(adopt, 30_000);
}
