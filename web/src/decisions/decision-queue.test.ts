import { describe, expect, it, vi } from "vitest";
import type { DecisionResult, ReviewDecision } from "../api/types";
import { removeOrphans, createPageStorage } from "./pending-changes";
import { DecisionQueue, type PendingChange } from "./decision-queue";

const yes = (item: number, label = "boat"): ReviewDecision[] => [{ item, label, state: "accepted" }];

class Service {
  requests: string[] = [];
  failure: "none" | "away" | "refuses" = "none";
  entry = 0;
  decide = async (decisions: ReviewDecision[]): Promise<DecisionResult> => this.recordRequest(`decide ${decisions.map((d) => d.item).join()}`);
  acceptAbove = async (): Promise<DecisionResult> => this.recordRequest("above");
  undo = async (entry: number): Promise<unknown> => this.recordRequest(`undo ${entry}`);
  isTransient = (): boolean => this.failure === "away";
  private async recordRequest(request: string): Promise<DecisionResult> {
    await Promise.resolve();
    if (this.failure !== "none") throw new Error(this.failure);
    this.requests.push(request);
    this.entry += 1;
    return { entry: this.entry, added: 1, changed: 0, removed: 0 };
  }
}

function createQueue(service = new Service(), initialChanges: PendingChange[] = []) {
  let changes = initialChanges;
  let number = 0;
  const storage = { read: () => changes, write: (updated: readonly PendingChange[]) => void (changes = [...updated]) };
  const onFailure = vi.fn();
  const queue = new DecisionQueue(service, storage, { onChange: () => undefined, onFailure }, () => `s${(number += 1)}`);
  return { queue, service, onFailure, getChanges: () => changes };
}

const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(60_000).then(() => undefined);

describe("the queue of decisions", () => {
  vi.useFakeTimers();

  it("sends one after the other, in order", async () => {
    const { queue, service, getChanges } = createQueue();
    queue.decide(yes(1));
    queue.decide(yes(2));
    queue.acceptAbove("boat", 0.9);
    expect(getChanges()).toHaveLength(3);
    await settle();
    expect(service.requests).toEqual(["decide 1", "decide 2", "above"]);
    expect(getChanges()).toEqual([]);
  });

  it("keeps what cannot be sent, and sends it when the service is back", async () => {
    const { queue, service, getChanges } = createQueue();
    service.failure = "away";
    queue.decide(yes(1));
    queue.decide(yes(2));
    await settle();
    expect(getChanges()).toHaveLength(2);
    expect(queue.getState().delayReason).toBe("away");
    service.failure = "none";
    queue.retry();
    await settle();
    expect(service.requests).toEqual(["decide 1", "decide 2"]);
    expect(queue.getState().delayReason).toBeNull();
  });

  it("goes on with what an earlier visit left", async () => {
    const first = createQueue();
    first.service.failure = "away";
    first.queue.decide(yes(7));
    await settle();
    const second = createQueue(new Service(), first.getChanges());
    await settle();
    expect(second.service.requests).toEqual(["decide 7"]);
  });

  it("never sends what is taken back before it was sent", async () => {
    const { queue, service } = createQueue();
    service.failure = "away";
    queue.decide(yes(1));
    const second = queue.decide(yes(2));
    await settle();
    queue.revert(second, "the second");
    service.failure = "none";
    queue.retry();
    await settle();
    expect(service.requests).toEqual(["decide 1"]);
  });

  it("undoes by the journal's entry what was sent, also while it is being sent", async () => {
    const { queue, service } = createQueue();
    const first = queue.decide(yes(1));
    queue.revert(first, "the first"); // under way
    await settle();
    const second = queue.decide(yes(2));
    await settle();
    queue.revert(second, "the second");
    await settle();
    expect(service.requests).toEqual(["decide 1", "undo 1", "decide 2", "undo 3"]);
  });

  it("sets aside what is refused, tells, and goes on", async () => {
    const { queue, service, onFailure } = createQueue();
    service.failure = "refuses";
    const id = queue.decide(yes(1));
    await settle();
    expect(onFailure).toHaveBeenCalledOnce();
    expect(queue.getState().failed).toHaveLength(1);
    service.failure = "none";
    queue.decide(yes(2));
    queue.retryChange(id);
    await settle();
    expect(service.requests).toEqual(["decide 2", "decide 1"]);
    expect(queue.getState().failed).toEqual([]);
  });
});

describe("changes kept in the browser", () => {
  function memory(): Storage {
    const map = new Map<string, string>();
    return {
      get length() {
        return map.size;
      },
      key: (i) => [...map.keys()][i] ?? null,
      getItem: (key) => map.get(key) ?? null,
      setItem: (key, value) => void map.set(key, value),
      removeItem: (key) => void map.delete(key),
      clear: () => map.clear(),
    };
  }
  const change: PendingChange = { id: "a", kind: "decide", decisions: yes(1) };

  it("takes over those of a page that is gone, once, and not of one that lives", () => {
    const storage = memory();
    createPageStorage("gone", storage, () => 0).write([change]);
    createPageStorage("lives", storage, () => 1_000_000).write([{ ...change, id: "b" }]);
    expect(removeOrphans("me", storage, () => 1_000_001)).toEqual([change]);
    expect(removeOrphans("me", storage, () => 1_000_001)).toEqual([]);
    expect(createPageStorage("lives", storage).read()).toHaveLength(1);
  });

  it("survives what others wrote there", () => {
    const storage = memory();
    storage.setItem("wsabie.waiting.bad", "{");
    expect(removeOrphans("me", storage)).toEqual([]);
    expect(createPageStorage("bad", storage).read()).toEqual([]);
  });
});
