import { describe, expect, it } from "vitest";
import { formatAccuracy, describeDeletion, formatLanguage } from "./messages";

describe("what is said of a label", () => {
  it("is a share with its number, or nothing", () => {
    expect(formatAccuracy(9, 10)).toBe("90 % of 10");
    expect(formatAccuracy(0, 0)).toBe("");
  });
  it("names languages as people do", () => {
    expect([formatLanguage("de"), formatLanguage("zh-Hant"), formatLanguage(""), formatLanguage("no language")]).toEqual(["German", "Traditional Chinese", "", "no language"]);
  });
});

describe("what goes with a label", () => {
  it("is told before it is deleted", () => {
    expect(describeDeletion({ items: 1200, rejected: 1, names: [{ name: "a", language: "" }] })).toBe(
      "1,200 pictures have this tag, 1 picture rejects it. That goes with the label and its 1 other name; the pictures stay.",
    );
    expect(describeDeletion({ items: 0, rejected: 0, names: [] })).toBe("No picture has this tag: only the label goes.");
    expect(describeDeletion({ items: 0, rejected: 2, names: [] })).toMatch(/^2 pictures reject it\. /);
  });
});
