/** Pictures of nothing with labels at random, always the same. */

import type { Annotation, ReviewDecision, JournalEntry, ItemSummary, ItemDetails, Job, Suggestion } from "../src/api/types";
import type { DecisionState } from "../src/api/client";

const WORDS =
  "harbour boat person dog cat bicycle street night tree snow mountain beach bread coffee flower bird bridge train window old_town market rain child guitar".split(
    " ",
  );
const LABELS = WORDS.map((name, i) => ({ id: i + 1, name: name.replace("_", " ") }));
const MOST = Number(process.env["FAKE_ITEMS"] ?? 100_000);
const decided = new Map<string, DecisionState | null>();
const entries: (JournalEntry & { back: [string, DecisionState | null | undefined][] })[] = [];
const jobs: Job[] = [];

interface Answer {
  status: number;
  type: string;
  body: string;
}

const chance = (seed: number): number => {
  let x = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return ((x ^ (x >>> 16)) >>> 0) / 4294967296;
};

function item(id: number): ItemSummary {
  const folder = ["", "2021/lisbon", "2022/alps", "2023"][id % 4]!;
  const shape = ([[1200, 800], [800, 1200], [1000, 1000]] as const)[id % 3]!;
  return {
    id,
    path: `${folder ? `${folder}/` : ""}IMG_${String(id).padStart(5, "0")}.jpg`,
    folder,
    width: shape[0],
    height: shape[1],
    taken_at: `202${id % 4}-0${1 + (id % 9)}-1${id % 9}T12:00:00`,
    state: "present",
    best_probability: chance(id),
    uncertainty: chance(id) / 2,
    probability: null,
    hash: `fake${id}`,
    labels: [],
    burst: id % 50 === 7 ? [id, id + 1, id + 2] : id % 50 === 8 ? [id - 1, id, id + 1] : id % 50 === 9 ? [id - 2, id - 1, id] : [],
  };
}

function suggestionsOf(id: number): Suggestion[] {
  return Array.from({ length: 6 }, (_, i) => {
    const label = LABELS[Math.floor(chance(id * 7 + i) * LABELS.length)]!;
    return { label_id: label.id, label: label.name, score: 3 - i, probability: Math.max(0.02, 0.97 - i * 0.17), at: null };
  }).filter((s, i, all) => all.findIndex((o) => o.label === s.label) === i);
}

function detail(id: number): ItemDetails {
  const annotations: Annotation[] = [];
  const base = { origin: "person", by: "ann", at: "2026-11-20T10:00:00Z", model: 1, score: 2, probability: 0.8 } as const;
  for (const [key, state] of decided) {
    const [of, label] = [key.slice(0, key.indexOf(" ")), key.slice(key.indexOf(" ") + 1)];
    if (Number(of) === id && state) annotations.push({ ...base, label_id: 1, label, state, region: "" });
  }
  const imported = LABELS[id % LABELS.length]!;
  annotations.push({
    ...base, label_id: imported.id, label: imported.name, state: "accepted", origin: "import", by: "XMP sidecar", model: null,
    score: null, probability: null, region: "",
  });
  const open = suggestionsOf(id).filter((s) => !annotations.some((a) => a.label === s.label));
  return { ...item(id), size: 2_345_678, added_at: "2026-11-01T00:00:00Z", annotations, suggestions: open };
}

function picture(id: number, hot: boolean): string {
  const { width, height } = item(id);
  const hue = Math.floor(chance(id) * 360);
  const heat = hot ? `<circle cx="60%" cy="40%" r="25%" fill="red" opacity=".5"/>` : "";
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="hsl(${hue} 45% 62%)"/><circle cx="${20 + (id % 6) * 10}%" cy="45%" r="22%" fill="hsl(${(hue + 60) % 360} 50% 45%)"/><path d="M0 ${height} L${width! / 3} ${height! / 2} L${width} ${height}z" fill="hsl(${(hue + 180) % 360} 30% 35%)"/>${heat}</svg>`;
}

function listing(url: URL): unknown {
  const get = (name: string): string | null => url.searchParams.get(name);
  const start = Number(get("cursor") ?? 0);
  const k = Number(get("k") ?? 100);
  const label = get("label");
  const total = label ? Math.round(MOST * (1 - Number(get("min_probability") ?? 0)) * 0.1) : get("words") ? 0 : MOST;
  const ids = Array.from({ length: Math.max(0, Math.min(k, total - start)) }, (_, i) => start + i + 1);
  const items = ids.map((id) => ({ ...item(id), probability: label ? Math.max(0, 1 - id / 400) : null }));
  return { items, next_cursor: start + k < total ? String(start + k) : null, total: start === 0 ? total : null };
}

function decide(decisions: ReviewDecision[]): unknown {
  const back = decisions.map((d): [string, DecisionState | null | undefined] => {
    const key = `${d.item} ${d.label}`;
    const before = decided.get(key);
    decided.set(key, d.state);
    return [key, before];
  });
  const id = entries.length + 1;
  const summary = `${decisions[0]?.label ?? ""} ${decisions[0]?.state ?? "undecided"} for ${decisions.length}`;
  const at = new Date().toISOString();
  entries.push({ id, at, by: "local", action: "decide", summary, undoes: null, undone_by: null, changes: decisions.length, back });
  return { entry: id, added: decisions.length, changed: 0, removed: 0 };
}

function undo(entry: number | null): unknown {
  const found = entries.find((e) => e.id === entry) ?? entries.at(-1);
  if (!found) return { entry: null };
  found.back.forEach(([key, state]) => (state === undefined ? decided.delete(key) : decided.set(key, state)));
  found.undone_by = entries.length + 1;
  return { entry: found };
}

function facts(): unknown {
  return {
    schema: 1,
    folder: "/home/ann/photos",
    items: { present: MOST, missing: 3, unreadable: 1 },
    labels: LABELS.length,
    accepted: 41_233 + decided.size,
    rejected: 512,
    suggestions: 188_020,
    model: { id: 3, created_at: "2026-11-20T10:00:00Z", method: "corrections", facts: {}, figures: { metrics: { MAP: 0.412, "p@1": 0.58 }, previous_metrics: { MAP: 0.39, "p@1": 0.55 } } },
    thresholds: [
      { precision: 0.99, probability: null },
      { precision: 0.95, probability: 0.91 },
      { precision: 0.9, probability: 0.78 },
    ],
    role: "write",
  };
}

function scored(start: number, n: number, label?: string): unknown[] {
  return Array.from({ length: n }, (_, i) => ({ ...item(start + i), score: 3 - i / 10, label: label ?? null }));
}

function asked(path: string, url: URL, given: unknown): unknown {
  const id = Number(/^\/items\/(\d+)/.exec(path)?.[1] ?? 0);
  if (path === "/collection") return facts();
  if (path === "/items") return listing(url);
  if (path.endsWith("/similar")) return { items: scored(id + 1, 12) };
  if (path.endsWith("/annotate")) return { results: [{ labels: suggestionsOf(id) }] };
  if (id) return detail(id);
  if (path === "/decisions") return decide((given as { decisions: ReviewDecision[] }).decisions);
  if (path === "/suggestions/count") return { count: Math.round(4000 * (1 - Number(url.searchParams.get("min_probability")))) };
  if (path === "/suggestions/accept") return { entry: entries.length, added: 120, changed: 0, removed: 0 };
  if (path === "/undo") return undo((given as { entry: number | null }).entry);
  if (path === "/journal") return { entries: entries.toReversed() };
  if (path === "/labels") {
    const start = (url.searchParams.get("prefix") ?? "").toLowerCase();
    const found = LABELS.filter((l) => l.name.startsWith(start));
    const named = found.map((l) => ({ ...l, synonym: l.id % 5 ? null : "port", language: "en", items: 3000 - 90 * l.id }));
    return { labels: named.slice(0, 8) };
  }
  if (path === "/facets") {
    return {
      folders: ["", "2021/lisbon", "2022/alps", "2023"].map((folder) => ({ folder, items: MOST / 4 })),
      labels: LABELS.map((l) => ({ id: l.id, name: l.name, accepted: 3000 - 90 * l.id, rejected: 2, open_suggestions: 9 * l.id })),
    };
  }
  if (path === "/search") {
    return {
      labels: ["harbour", "boat"],
      unlabels: ["person"],
      notes: ["“port” is another name of harbour"],
      groups: [
        { labels: ["harbour", "boat"], reason: "both are accepted or likely", score: 1, items: scored(5, 12) },
        { labels: ["pier"], reason: "a part of a harbour", score: 0.7, items: scored(300, 7, "pier") },
        { labels: ["ship"], reason: "a kind of boat", score: 0.5, items: scored(900, 5, "ship") },
      ],
    };
  }
  if (path === "/search/picture") return { labels: suggestionsOf(8), items: scored(40, 48) };
  if (path === "/models" || path.endsWith("/use")) return models();
  if (path.startsWith("/models/")) return { ...models().models.find((m) => m.id === Number(path.split("/")[2])), curve: CURVE };
  if (path === "/jobs" && given) return started((given as { kind: Job["kind"] }).kind);
  if (path === "/jobs") return { jobs };
  return null;
}

const CURVE = Array.from({ length: 20 }, (_, i) => ({ epoch: i + 1, loss: 2.5 / (i + 1), MAP: 0.42 - 0.3 / (i + 1) }));

function models(): { models: { id: number }[] } & Record<string, unknown> {
  const model = (id: number, parent: number | null): { id: number } & Record<string, unknown> => ({
    id, parent, created_at: `2026-11-${10 + id}T10:00:00Z`, method: parent ? "corrections" : "full", in_use: id === 3, is_available: true,
    facts: { items: 40_000, labels: 24, features: "colour,hog", best_epoch: 18 },
    figures: { items: 7_000, metrics: { MAP: 0.37 + id / 100, "p@1": 0.55, "p@5": 0.31 }, previous_metrics: null },
  });
  const outlook = { decisions: 33, method: "corrections", reason: "31 items have new decisions since model 3" };
  return { models: [model(3, 2), model(2, null)], removed: [1], rollback: { entry: 1, model: 2 }, forecast: outlook, encoders: ["lite0", "dinov2-small"] };
}

function started(kind: Job["kind"]): Job {
  const at = new Date().toISOString();
  const progress = { stage: "pictures", completed: 320, total: 1000, unit: "pictures" };
  const job: Job = { id: jobs.length + 1, kind, state: "running", by: "local", options: {}, progress, result: null, error: null, requested_at: at, started_at: at, ended_at: null };
  jobs.unshift(job);
  return job;
}

export function answer(method: string, url: URL, given: unknown): Answer {
  const path = url.pathname.replace("/api/v1", "");
  if (/\/(thumbnail|heat|file)$/.test(path)) {
    return { status: 200, type: "image/svg+xml", body: picture(Number(/\d+/.exec(path)![0]), path.endsWith("heat")) };
  }
  if (path.endsWith("/events")) return { status: 200, type: "text/event-stream", body: `event: job\ndata: ${JSON.stringify(jobs[0])}\n\n` };
  if (path === "/openapi.json") return { status: 200, type: "application/json", body: JSON.stringify({ openapi: "3.1.0", info: { title: "fake", version: "0" }, paths: {} }) };
  const told = asked(path, url, method === "POST" ? given : null);
  if (told === null) return { status: 404, type: "application/problem+json", body: JSON.stringify({ detail: `nothing at ${path}` }) };
  return { status: 200, type: "application/json", body: JSON.stringify(told) };
}
