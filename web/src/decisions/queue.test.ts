import { describe, expect, it, vi } from "vitest";
import type { DecisionResult, DecisionRequest } from "../api/types";
import { orphans, pageKeeper } from "./keeper";
import { DecisionQueue, type Step } from "./queue";

const yes = (item: number, label = "boat"): DecisionRequest[] => [{ item, label, state: "accepted" }];

class Service {
  taken: string[] = [];
  trouble: "none" | "away" | "refuses" = "none";
  entry = 0;
  decide = async (decisions: DecisionRequest[]): Promise<DecisionResult> => this.take(`decide ${decisions.map((d) => d.item).join()}`);
  above = async (): Promise<DecisionResult> => this.take("above");
  undo = async (entry: number): Promise<unknown> => this.take(`undo ${entry}`);
  passing = (): boolean => this.trouble === "away";
  private async take(what: string): Promise<DecisionResult> {
    await Promise.resolve();
    if (this.trouble !== "none") throw new Error(this.trouble);
    this.taken.push(what);
    this.entry += 1;
    return { entry: this.entry, added: 1, changed: 0, removed: 0 };
  }
}

function made(service = new Service(), kept: Step[] = []) {
  let store = kept;
  let number = 0;
  const keeper = { read: () => store, write: (steps: readonly Step[]) => void (store = [...steps]) };
  const refused = vi.fn();
  const queue = new DecisionQueue(service, keeper, { changed: () => undefined, refused }, () => `s${(number += 1)}`);
  return { queue, service, refused, kept: () => store };
}

const settled = (): Promise<void> => vi.advanceTimersByTimeAsync(60_000).then(() => undefined);

describe("the queue of decisions", () => {
  vi.useFakeTimers();

  it("sends one after the other, in order", async () => {
    const { queue, service, kept } = made();
    queue.decide(yes(1));
    queue.decide(yes(2));
    queue.above("boat", 0.9);
    expect(kept()).toHaveLength(3);
    await settled();
    expect(service.taken).toEqual(["decide 1", "decide 2", "above"]);
    expect(kept()).toEqual([]);
  });

  it("keeps what cannot be sent, and sends it when the service is back", async () => {
    const { queue, service, kept } = made();
    service.trouble = "away";
    queue.decide(yes(1));
    queue.decide(yes(2));
    await settled();
    expect(kept()).toHaveLength(2);
    expect(queue.state().trouble).toBe("away");
    service.trouble = "none";
    queue.retry();
    await settled();
    expect(service.taken).toEqual(["decide 1", "decide 2"]);
    expect(queue.state().trouble).toBeNull();
  });

  it("goes on with what an earlier visit left", async () => {
    const first = made();
    first.service.trouble = "away";
    first.queue.decide(yes(7));
    await settled();
    const second = made(new Service(), first.kept());
    await settled();
    expect(second.service.taken).toEqual(["decide 7"]);
  });

  it("never sends what is taken back before it was sent", async () => {
    const { queue, service } = made();
    service.trouble = "away";
    queue.decide(yes(1));
    const second = queue.decide(yes(2));
    await settled();
    queue.takeBack(second, "the second");
    service.trouble = "none";
    queue.retry();
    await settled();
    expect(service.taken).toEqual(["decide 1"]);
  });

  it("undoes by the journal's entry what was sent, also while it is being sent", async () => {
    const { queue, service } = made();
    const first = queue.decide(yes(1));
    queue.takeBack(first, "the first"); // under way
    await settled();
    const second = queue.decide(yes(2));
    await settled();
    queue.takeBack(second, "the second");
    await settled();
    expect(service.taken).toEqual(["decide 1", "undo 1", "decide 2", "undo 3"]);
  });

  it("sets aside what is refused, tells, and goes on", async () => {
    const { queue, service, refused } = made();
    service.trouble = "refuses";
    const id = queue.decide(yes(1));
    await settled();
    expect(refused).toHaveBeenCalledOnce();
    expect(queue.state().refused).toHaveLength(1);
    service.trouble = "none";
    queue.decide(yes(2));
    queue.tryAgain(id);
    await settled();
    expect(service.taken).toEqual(["decide 2", "decide 1"]);
    expect(queue.state().refused).toEqual([]);
  });
});

describe("steps kept in the browser", () => {
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
  const step: Step = { id: "a", kind: "decide", decisions: yes(1) };

  it("takes over those of a page that is gone, once, and not of one that lives", () => {
    const storage = memory();
    pageKeeper("gone", storage, () => 0).write([step]);
    pageKeeper("lives", storage, () => 1_000_000).write([{ ...step, id: "b" }]);
    expect(orphans("me", storage, () => 1_000_001)).toEqual([step]);
    expect(orphans("me", storage, () => 1_000_001)).toEqual([]);
    expect(pageKeeper("lives", storage).read()).toHaveLength(1);
  });

  it("survives what others wrote there", () => {
    const storage = memory();
    storage.setItem("wsabie.waiting.bad", "{");
    expect(orphans("me", storage)).toEqual([]);
    expect(pageKeeper("bad", storage).read()).toEqual([]);
  });
});
