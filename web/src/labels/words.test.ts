import { describe, expect, it } from "vitest";
import { accuracy, spoken } from "./words";

describe("what is said of a label", () => {
  it("is a share with its number, or nothing", () => {
    expect(accuracy(9, 10)).toBe("90 % of 10");
    expect(accuracy(0, 0)).toBe("");
  });
  it("names languages as people do", () => {
    expect([spoken("de"), spoken("zh-Hant"), spoken(""), spoken("no language")]).toEqual(["German", "Traditional Chinese", "", "no language"]);
  });
});
