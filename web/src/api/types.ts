/** What the service answers; see its OpenAPI page. */

export type Sort = "path" | "taken" | "added" | "best" | "doubt" | "probability";
export type LabelState = "accepted" | "rejected" | "suggested";
export type Verdict = "accepted" | "rejected";

export interface Item {
  id: number;
  path: string;
  folder: string;
  width: number | null;
  height: number | null;
  taken: string | null;
  state: "present" | "missing" | "unreadable";
  best: number | null;
  doubt: number | null;
  probability?: number | null; // of the label that was asked for
  hash: string | null;
}

export interface Annotation {
  label_id: number;
  label: string;
  state: Verdict;
  origin: "person" | "import" | "model";
  by: string;
  at: string;
  model: number | null;
  score: number | null;
  probability: number | null;
  region: string;
}

export interface Suggestion {
  label_id?: number;
  label: string;
  score: number;
  probability: number | null;
  at?: string | null; // when the model looked; not of what it ranks now
}

export interface ItemDetail extends Item {
  size: number | null;
  added: string;
  annotations: Annotation[];
  suggestions: Suggestion[];
}

export interface ItemPage {
  items: Item[];
  next: string | null;
  total: number | null;
}

export interface ScoredItem extends Item {
  score: number | null;
  label?: string | null;
}

export interface CollectionFacts {
  folder: string;
  items: { present?: number; missing?: number; unreadable?: number };
  labels: number;
  accepted: number;
  rejected: number;
  suggestions: number;
  reviewed?: number;
  model: { id: number; made: string; how: string; facts: Facts; figures: Facts } | null;
  thresholds?: { precision: number; probability: number | null }[];
  index?: IndexFacts | null;
  role: "read" | "write";
}

/** The approximate index of the model in use: how often it finds the nearest pictures, and how soon. */
export interface IndexFacts {
  state: "ready" | "none" | "few" | "not installed";
  recall: number | null;
  milliseconds: number | null;
  exact_milliseconds: number | null;
}

export type Facts = Record<string, unknown>;

export interface LabelHit {
  id: number;
  name: string;
  other: string | null; // the name by which it was found, where that is another
  language: string; // of that name
  items: number;
}

export interface Facets {
  folders: { folder: string; items: number }[];
  labels: LabelCount[];
}

export interface LabelCount {
  id: number;
  label: string;
  accepted: number;
  rejected: number;
  suggested: number;
}

export interface SearchGroup {
  labels: string[];
  why: string;
  score: number | null;
  items: ScoredItem[];
}

export interface SearchAnswer {
  wanted: string[];
  unwanted: string[];
  said: string[];
  groups: SearchGroup[];
}

export interface PictureAnswer {
  labels: Suggestion[];
  items: ScoredItem[];
}

export interface Decision {
  item: number;
  label: string;
  state: Verdict | null;
  region?: string;
}

export interface Decided {
  entry: number | null;
  added: number;
  changed: number;
  removed: number;
}

export interface Entry {
  id: number;
  at: string;
  by: string;
  action: string;
  told: string;
  undoes: number | null;
  undone_by: number | null;
  changes: number;
}

export type Method = "pca" | "umap";

export interface MapFacts {
  model: number;
  method: Method;
  version: string;
  points: number;
  box: { x: number; y: number; side: number };
  share: number | null;
  projections: { method: Method; state: "ready" | "stale" | "none" | "not installed"; placed: number; made: string | null }[];
}

export interface MapLabel {
  id: number;
  label: string;
  x: number;
  y: number;
  accepted: number;
}

export type JobKind = "scan" | "train" | "apply" | "tidy" | "compare" | "map" | "index";
export type JobState = "waiting" | "running" | "done" | "failed" | "stopped";

export interface Job {
  id: number;
  kind: JobKind;
  state: JobState;
  by: string;
  options: Facts;
  progress: { stage?: string; done?: number; total?: number | null; unit?: string; figures?: Facts; curve?: Point[] };
  result: Facts | null;
  error: string | null;
  asked: string;
  started: string | null;
  ended: string | null;
}

/** Figures of an epoch; MAP is that of the held-out items. */
export interface Point {
  epoch: number;
  loss: number;
  MAP: number;
}

export type Figures = Record<string, number>;

export interface Difference {
  mean: number;
  low: number;
  high: number;
}

export interface ModelSeen {
  id: number;
  made: string;
  how: string;
  parent: number | null;
  in_use: boolean;
  there: boolean;
  facts: { items?: number; labels?: number; describe?: string; seconds?: number; best_epoch?: number; kept_back?: string };
  figures: { items?: number; now?: Figures };
}

export interface ModelWhole extends ModelSeen {
  curve: Point[];
}

export interface Models {
  models: ModelSeen[];
  removed: number[];
  back: { entry: number; model: number } | null;
  outlook: { decisions: number; how: "full" | "corrections" | "nothing"; why: string };
}

export interface Moved {
  label: string;
  items: number;
  before: number;
  after: number;
}

export interface ComparedModel {
  model: number;
  labels: number;
  describe: string;
  figures: Figures;
  difference: Record<string, Difference> | null;
  verdict: "better" | "worse" | "alike" | null;
  gained: Moved[];
  lost: Moved[];
}

export interface Comparison {
  items: number;
  labels: number;
  tags: number;
  models: ComparedModel[];
  told: string[];
}
