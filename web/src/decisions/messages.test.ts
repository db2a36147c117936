import { describe, expect, it } from "vitest";
import type { ReviewDecision } from "../api/types";
import { describeChange } from "./messages";

describe("what is said of a change on its way", () => {
  it("is what is taken back, be it a decision, a merge or an import", () => {
    const undo = { id: "a", kind: "undo", changeId: "", entry: 3 } as const;
    expect(describeChange({ ...undo, description: "boat accepted" })).toBe("Taking back: boat accepted");
    expect(describeChange({ ...undo, description: "merged 'boats' into 'boat'" })).toBe("Taking back: merged 'boats' into 'boat'");
  });
  it("is the first decision and how many more", () => {
    const decisions: ReviewDecision[] = [1, 2, 3].map((item) => ({ item, label: "boat", state: "rejected" }));
    expect(describeChange({ id: "a", kind: "decide", decisions })).toBe("boat rejected and 2 more");
    expect(describeChange({ id: "a", kind: "decide", decisions: [{ item: 1, label: "boat", state: null }] })).toBe("boat left open");
    expect(describeChange({ id: "a", kind: "above", label: null, probability: 0.9 })).toBe("Accepting everything from 90 %");
  });
});
