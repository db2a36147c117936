import { beforeEach, describe, expect, it, vi } from "vitest";
import type { DecisionResult } from "../api/types";

const requests: string[] = [];
let refusal = "";
vi.mock("../api/client", () => {
  class ApiError extends Error {
    isTransient = false;
  }
  const api = {
    decide: (): Promise<DecisionResult> => {
      requests.push("decide");
      return Promise.resolve({ entry: 7, added: 1, changed: 0, removed: 0 });
    },
    undo: (entry: number): Promise<void> => {
      requests.push(`undo ${entry}`);
      return refusal ? Promise.reject(new ApiError(refusal)) : Promise.resolve();
    },
  };
  return { api, ApiError };
});
const storage = { length: 0, key: () => null, getItem: () => null, setItem: () => undefined, removeItem: () => undefined };
vi.stubGlobal("localStorage", storage);
vi.stubGlobal("sessionStorage", storage);

describe("what was done, on whatever view", () => {
  let history: typeof import("./decision-history");
  let notificationText: () => string | undefined;
  vi.useFakeTimers();
  const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(100);

  beforeEach(async () => {
    vi.resetModules();
    requests.length = 0;
    refusal = "";
    history = await import("./decision-history");
    (await import("./write-permission")).writePermission.set(true);
    const { notification } = await import("../base/notifications");
    notificationText = () => notification.get()?.text;
  });

  it("is taken back in the order in which it was done", async () => {
    const onUndo = vi.fn();
    history.recordChange(3, "Renamed a", onUndo);
    history.decide([{ item: 1, label: "boat", state: "accepted" }], "boat accepted");
    history.recordChange(8, "Renamed b", onUndo);
    await settle();
    for (const [item, text] of [[null, "Renamed b"], [1, "boat accepted"], [null, "Renamed a"]] as const) {
      expect(history.undo()).toBe(item);
      await settle();
      expect(notificationText()).toBe(`Taken back: ${text}`);
    }
    expect(requests).toEqual(["decide", "undo 8", "undo 7", "undo 3"]);
    expect(onUndo).toHaveBeenCalledTimes(2);
    history.undo();
    expect(notificationText()).toContain("Nothing to undo");
  });

  it("is not taken back again when the history has taken it back", async () => {
    history.recordChange(3, "Renamed a", () => undefined);
    history.decide([{ item: 1, label: "boat", state: "accepted" }], "boat accepted");
    await settle();
    history.undoEntry(7, "boat accepted", () => undefined);
    expect(history.overlay.get().size).toBe(0);
    await settle();
    history.undo();
    await settle();
    expect(requests).toEqual(["decide", "undo 7", "undo 3"]);
  });

  it("tells why it was not taken back, and has pages ask again", async () => {
    refusal = "later entries come first";
    const onUndo = vi.fn();
    history.undoEntry(5, "Renamed a", onUndo);
    await settle();
    expect(notificationText()).toBe("Not saved: later entries come first");
    expect(onUndo).toHaveBeenCalledOnce();
    expect(history.queue.getState().failed).toHaveLength(1);
  });

  it("is as good as taken back when that was done already", async () => {
    refusal = "entry 5 is undone already, by entry 6; undo that entry first";
    const onUndo = vi.fn();
    history.undoEntry(5, "Renamed a", onUndo);
    await settle();
    expect(requests).toEqual(["undo 5"]);
    expect(onUndo).toHaveBeenCalledOnce();
    expect(history.queue.getState().failed).toHaveLength(0);
    expect(history.queue.getState().pending).toHaveLength(0);
  });
});
