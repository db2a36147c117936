import { afterEach, describe, expect, it, vi } from "vitest";
import { api } from "../api/client";
import { labelApi } from "../api/labels";
import type { LabelDetails } from "../api/types";
import { fetchThresholds } from "./thresholds";

const hit = (id: number, name: string) => ({ id, name, synonym: null, language: "", items: 1 });

describe("limits of a label", () => {
  afterEach(() => vi.restoreAllMocks());

  it("are its own, not those of a label that begins so", async () => {
    vi.spyOn(api, "completeLabels").mockResolvedValue({ labels: [hit(3, "Sea"), hit(7, "sea"), hit(8, "seal")] });
    const limits = [
      { precision: 0.8, probability: 0.31, own: true },
      { precision: 0.9, probability: null, own: true },
    ];
    const getLabel = vi.spyOn(labelApi, "get").mockResolvedValue({ evaluation: { thresholds: limits } } as unknown as LabelDetails);
    expect(await fetchThresholds("sea")).toEqual([{ precision: 0.8, probability: 0.31, own: true }]);
    expect(getLabel.mock.calls[0]?.[0]).toBe(7);
  });
  it("are not known of what is not a label, or was not judged", async () => {
    vi.spyOn(api, "completeLabels").mockResolvedValue({ labels: [hit(8, "seal")] });
    vi.spyOn(labelApi, "get").mockResolvedValue({ evaluation: null } as LabelDetails);
    expect([await fetchThresholds("sea"), await fetchThresholds("seal")]).toEqual([null, null]);
  });
});
