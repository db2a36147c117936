import { beforeEach, describe, expect, it, vi } from "vitest";
import type { DecisionResult } from "../api/types";

const asked: string[] = [];
let refuses = "";
vi.mock("../api/client", () => {
  class ApiError extends Error {
    passing = false;
  }
  const api = {
    decide: (): Promise<DecisionResult> => {
      asked.push("decide");
      return Promise.resolve({ entry: 7, added: 1, changed: 0, removed: 0 });
    },
    undo: (entry: number): Promise<void> => {
      asked.push(`undo ${entry}`);
      return refuses ? Promise.reject(new ApiError(refuses)) : Promise.resolve();
    },
  };
  return { api, ApiError };
});
const storage = { length: 0, key: () => null, getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
vi.stubGlobal("localStorage", storage);
vi.stubGlobal("sessionStorage", storage);

describe("what was done, on whatever view", () => {
  let desk: typeof import("./desk");
  let told: () => string | undefined;
  vi.useFakeTimers();
  const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(100);

  beforeEach(async () => {
    vi.resetModules();
    asked.length = 0;
    refuses = "";
    desk = await import("./desk");
    (await import("./may")).mayWrite.set(true);
    const { said } = await import("../base/saying");
    told = () => said.get()?.text;
  });

  it("is taken back in the order in which it was done", async () => {
    const after = vi.fn();
    desk.remember(3, "Renamed a", after);
    desk.decide([{ item: 1, label: "boat", state: "accepted" }], "boat accepted");
    desk.remember(8, "Renamed b", after);
    await settled();
    for (const [item, text] of [[null, "Renamed b"], [1, "boat accepted"], [null, "Renamed a"]] as const) {
      expect(desk.undo()).toBe(item);
      await settled();
      expect(told()).toBe(`Taken back: ${text}`);
    }
    expect(asked).toEqual(["decide", "undo 8", "undo 7", "undo 3"]);
    expect(after).toHaveBeenCalledTimes(2);
    desk.undo();
    expect(told()).toContain("Nothing to undo");
  });

  it("is not taken back again when the history has taken it back", async () => {
    desk.remember(3, "Renamed a", () => undefined);
    desk.decide([{ item: 1, label: "boat", state: "accepted" }], "boat accepted");
    await settled();
    desk.undoEntry(7, "boat accepted", () => undefined);
    expect(desk.overlay.get().size).toBe(0);
    await settled();
    desk.undo();
    await settled();
    expect(asked).toEqual(["decide", "undo 7", "undo 3"]);
  });

  it("tells why it was not taken back, and has pages ask again", async () => {
    refuses = "later entries come first";
    const after = vi.fn();
    desk.undoEntry(5, "Renamed a", after);
    await settled();
    expect(told()).toBe("Not saved: later entries come first");
    expect(after).toHaveBeenCalledOnce();
    expect(desk.queue.state().refused).toHaveLength(1);
  });

  it("is as good as taken back when that was done already", async () => {
    refuses = "entry 5 is undone already, by entry 6; undo that one to have it back";
    const after = vi.fn();
    desk.undoEntry(5, "Renamed a", after);
    await settled();
    expect(asked).toEqual(["undo 5"]);
    expect(after).toHaveBeenCalledOnce();
    expect(desk.queue.state().refused).toHaveLength(0);
    expect(desk.queue.state().waiting).toHaveLength(0);
  });
});
