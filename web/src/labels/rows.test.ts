import { describe, expect, it } from "vitest";
import type { LabelRow } from "../api/labels";
import { accuracy, spoken } from "./words";
import { Rows } from "./rows";

const row = (id: number, name = `label ${id}`): LabelRow => ({ id, name }) as LabelRow;
const soon = (): Promise<void> => new Promise((done) => setTimeout(done, 0));

function served(names: string[]): { rows: Rows; calls: number[] } {
  const calls: number[] = [];
  const rows = new Rows((after, k) => {
    calls.push(after);
    return Promise.resolve({ total: names.length, labels: names.slice(after, after + k).map((name, i) => row(after + i, name)) });
  }, 10);
  return { rows, calls };
}

describe("a long list of labels", () => {
  it("asks for the parts that are looked at, once", async () => {
    const { rows, calls } = served(Array.from({ length: 95 }, (_, i) => `n${i}`));
    rows.need(0, 5);
    rows.need(0, 12);
    await soon();
    expect(calls).toEqual([0, 10]);
    expect([rows.get().total, rows.at(3)?.name, rows.at(30), rows.indexOf(11), rows.indexOf(50)]).toEqual([95, "n3", undefined, 11, -1]);
    rows.need(90, 94);
    await soon();
    expect(rows.at(94)?.name).toBe("n94");
  });
  it("keeps what is known until the new is there", async () => {
    const names = ["a", "b"];
    const { rows } = served(names);
    rows.need(0, 1);
    await soon();
    names[0] = "c";
    rows.refresh();
    expect(rows.at(0)?.name).toBe("a");
    await soon();
    expect(rows.at(0)?.name).toBe("c");
  });
  it("tells of trouble, and asks again when it is looked at again", async () => {
    let broken = true;
    const rows = new Rows(() => (broken ? Promise.reject(new Error("gone")) : Promise.resolve({ total: 1, labels: [row(1)] })));
    rows.need(0, 0);
    await soon();
    expect(rows.get().error?.message).toBe("gone");
    broken = false;
    rows.need(0, 0);
    await soon();
    expect([rows.get().error, rows.at(0)?.id]).toEqual([null, 1]);
  });
});

describe("what is said of a label", () => {
  it("is a share with its number, or nothing", () => {
    expect(accuracy(9, 10)).toBe("90 % of 10");
    expect(accuracy(0, 0)).toBe("");
  });
  it("names languages as people do", () => {
    expect([spoken("de"), spoken("zh-Hant"), spoken(""), spoken("no language")]).toEqual(["German", "Traditional Chinese", "", "no language"]);
  });
});
