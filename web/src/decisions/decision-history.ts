/** Decisions of this page: the queue, the history, undo. */

import { api, ApiError } from "../api/client";
import type { DecisionResult, ReviewDecision, ItemDetails } from "../api/types";
import type { DecisionState } from "../api/client";
import { formatCount } from "../base/format";
import { createStore, useStore } from "../base/store";
import { buildDecisionKey } from "../item/decision-key";
import { notify } from "../base/notifications";
import { removeOrphans, createPageStorage } from "./pending-changes";
import { writePermission } from "./write-permission";
import { type QueueState, DecisionQueue, type PendingChange } from "./decision-queue";

type DecisionOverlay = ReadonlyMap<string, DecisionState | null>;

/** Decisions of this page, shown over the state of the service. */
export const overlay = createStore<DecisionOverlay>(new Map());
/** Increases with each answer of the service, so that counts can be reloaded. */
export const answerCount = createStore(0);
const queueState = createStore<QueueState>({ pending: [], failed: [], delayReason: null });

interface HistoryEntry {
  source: string | number; // a change of the queue, or an entry of the journal
  description: string;
  item: number | null; // the item to show after undo
  previousStates: [string, DecisionState | null | undefined][]; // undefined: no decision on this page
  onUndo: () => void; // called when the service has undone it, or refused to
}
const history: HistoryEntry[] = []; // latest last
const undoEntries = new Map<string, HistoryEntry>(); // entries by the changes that undo them
const doNothing = (): void => undefined;

function refuseReadOnly(): boolean {
  if (!writePermission.get()) notify("You may look at this collection, but not change it.");
  return !writePermission.get();
}

function createId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join("");
}

function getPageId(): string {
  try {
    const storedId = sessionStorage.getItem("wsabie.page");
    if (storedId) return storedId;
    const name = createId();
    sessionStorage.setItem("wsabie.page", name);
    return name;
  } catch {
    return createId();
  }
}

/** Ignore an undo that was sent twice because its answer was lost. */
function ignoreRepeatedUndo(error: unknown): null {
  if (error instanceof ApiError && error.message.includes("is undone already")) return null;
  throw error;
}

const pageId = getPageId();
const storage = createPageStorage(pageId, localStorage);
export const queue: DecisionQueue = new DecisionQueue(
  {
    decide: api.decide,
    acceptAbove: (change) => api.acceptAbove(change.label, change.probability),
    undo: (entry) => api.undo(entry).catch(ignoreRepeatedUndo),
    isTransient: (error) => error instanceof ApiError && error.isTransient,
  },
  storage,
  { onChange: () => queueState.set(queue.getState()), onAnswer: handleAnswer, onFailure: handleFailure },
  createId,
);

export function useQueue(): QueueState {
  return useStore(queueState);
}

/** Record decisions and queue them; `description` is shown by undo. */
export function decide(decisions: ReviewDecision[], description: string): void {
  if (!decisions.length || refuseReadOnly()) return;
  const previousStates = decisions.map((d): HistoryEntry["previousStates"][number] => {
    const key = buildDecisionKey(d.item, d.label);
    return [key, overlay.get().has(key) ? overlay.get().get(key)! : undefined];
  });
  overlay.set((previous) => {
    const next = new Map(previous);
    for (const d of decisions) {
      const key = buildDecisionKey(d.item, d.label);
      const isExpected = !d.expected || d.expected === (previous.get(key) ?? "open");
      if (!d.region && isExpected) next.set(key, d.state);
    }
    return next;
  });
  history.push({ source: queue.decide(decisions), description, item: decisions[0]!.item, previousStates, onUndo: doNothing });
}

/** Accept every suggestion at or above a probability. */
export function acceptAbove(label: string | null, probability: number, description: string): void {
  if (refuseReadOnly()) return;
  history.push({ source: queue.acceptAbove(label, probability), description, item: null, previousStates: [], onUndo: doNothing });
}

/** Record another change by its journal entry; undo reverts it in its turn and calls `onUndo`. */
export function recordChange(entry: number, description: string, onUndo: () => void): void {
  history.push({ source: entry, description, item: null, previousStates: [], onUndo });
}

/** Undo the last change on any view; return its item. */
export function undo(): number | null {
  if (refuseReadOnly()) return null;
  const entry = history.pop();
  if (!entry) {
    notify("Nothing to undo on this page; the history is under Status.");
    return null;
  }
  revert(entry);
  return entry.item;
}

/** Undo an entry of the journal, out of order, by anyone. */
export function undoEntry(entry: number, description: string, onUndo: () => void): void {
  if (refuseReadOnly()) return;
  const position = history.findIndex((m) => m.source === entry || (typeof m.source === "string" && queue.findEntry(m.source) === entry));
  const previousStates = position >= 0 ? history.splice(position, 1)[0]!.previousStates : [];
  revert({ source: entry, description, item: null, previousStates, onUndo });
}

function revert(entry: HistoryEntry): void {
  overlay.set((previous) => {
    const next = new Map(previous);
    for (const [key, state] of entry.previousStates) {
      if (state === undefined) next.delete(key);
      else next.set(key, state);
    }
    return next;
  });
  if (typeof entry.source === "number") {
    undoEntries.set(queue.undoEntry(entry.source, entry.description), entry);
    return;
  }
  queue.revert(entry.source, entry.description);
  notify(`Taken back: ${entry.description}`);
}

/** Show what the service says about an item in place of earlier decisions on this page. */
export function refreshOverlay(item: ItemDetails): void {
  const prefix = `${item.id} `;
  const keys = [...overlay.get().keys()].filter((key) => key.startsWith(prefix));
  const states = new Map(item.annotations.filter((one) => !one.region).map((one) => [prefix + one.label, one.state]));
  if (keys.length) overlay.set((previous) => new Map([...previous, ...keys.map((key) => [key, states.get(key) ?? null] as const)]));
}

/** Drop the overlay of an item; the state of the service applies. */
function clearOverlay(item: number): void {
  const prefix = `${item} `;
  if (![...overlay.get().keys()].some((key) => key.startsWith(prefix))) return;
  overlay.set((previous) => new Map([...previous].filter(([key]) => !key.startsWith(prefix))));
}

function handleAnswer(change: PendingChange, result: DecisionResult | null): void {
  answerCount.set((n) => n + 1);
  const undoneEntry = undoEntries.get(change.id);
  if (undoneEntry) {
    undoEntries.delete(change.id);
    notify(`Taken back: ${undoneEntry.description}`);
    undoneEntry.onUndo();
  }
  if (change.kind === "above" && result) notify(`Accepted ${formatCount(result.added + result.changed, "suggestion")}.`);
}

function handleFailure(change: PendingChange, reason: string): void {
  if (change.kind === "decide") change.decisions.forEach((d) => clearOverlay(d.item));
  const position = history.findIndex((m) => m.source === change.id);
  if (position >= 0) history.splice(position, 1);
  undoEntries.get(change.id)?.onUndo();
  notify(`Not saved: ${reason}`);
}

export function startDecisionHistory(): void {
  queueState.set(queue.getState());
  window.addEventListener("online", queue.retry);
  window.addEventListener("beforeunload", (event) => {
    if (queue.getState().pending.length) event.preventDefault();
  });
  const adoptOrphans = (): void => {
    storage.write(queue.getState().pending); // marks this page as alive
    const orphans = removeOrphans(pageId, localStorage);
    if (orphans.length) queue.adopt(orphans);
  };
  adoptOrphans();
  setInterval(adoptOrphans, 30_000);
}
