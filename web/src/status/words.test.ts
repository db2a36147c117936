import { describe, expect, it } from "vitest";
import type { Job } from "../api/types";
import { notesOf } from "./words";

describe("what a scan has to say", () => {
  const scan = (result: unknown): Job => ({ kind: "scan", state: "done", result }) as Job;

  it("is which folders it left alone, and where tags come from", () => {
    const away = [{ folder: "/disk", reason: "it cannot be reached", items: 3 }];
    expect(notesOf(scan({ away, notes: ["tags come from sidecars"] }))).toEqual([
      "/disk is left as it was (3 items): it cannot be reached",
      "tags come from sidecars",
    ]);
    expect(notesOf(scan({ away: [], notes: [] }))).toEqual([]);
  });
  it("is nothing before it is done, and nothing of other work", () => {
    expect(notesOf(scan(null))).toEqual([]);
    expect(notesOf({ kind: "train", result: { model: 3 } } as unknown as Job)).toEqual([]);
  });
});
