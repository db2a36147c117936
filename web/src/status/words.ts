import type { Job } from "../api/types";
import { count } from "../base/format";

interface ScanResult {
  away: { folder: string; reason: string; items: number }[];
  notes: string[];
}

/** What a scan has to say when it is done: folders that it left alone, and where tags come from. */
export function notesOf(job: Job): string[] {
  if (job.kind !== "scan" || !job.result) return [];
  const { away, notes } = job.result as unknown as ScanResult;
  return [...away.map((one) => `${one.folder} is left as it was (${count(one.items, "item")}): ${one.reason}`), ...notes];
}
