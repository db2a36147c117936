/** Asking the service: JSON in and out, and its errors as one kind of error. */

import type {
  AnnotateResponse,
  CollectionStatus,
  Completions,
  DecisionRequest,
  DecisionResult,
  Facets,
  ItemDetails,
  ItemHits,
  ItemPage,
  JobList,
  JobStatus,
  JournalPage,
  LabelPositions,
  MapStatus,
  ModelDetails,
  ModelList,
  operations,
  PictureSearchResult,
  SearchResult,
  SuggestionCount,
  UndoResult,
} from "./types";

export type Verdict = NonNullable<DecisionRequest["state"]>;
export type JobKind = JobStatus["kind"];
export type MapMethod = MapStatus["method"];
type ItemParameters = NonNullable<operations["list_items"]["parameters"]["query"]>;
export type Sort = NonNullable<ItemParameters["sort"]>;

/** Filter and order of a list of items. */
export interface ItemQuery extends Omit<ItemParameters, "cursor" | "k"> {
  picked?: string; // never sent: which selection of this page, see gallery/picked.ts
}

export const API = "/api/v1";
export const AWAY = "the service cannot be reached";
const COOKIE = "wsabie_token";

/** What the service refused, or that it could not be reached (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
    this.name = "ApiError";
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return [0, 401, 403, 408, 429].includes(this.status) || this.status >= 500; // with another token, too
  }
}

type Params = Record<string, string | number | boolean | null | undefined>;

/** The query of an address; what is empty is left out. */
export function query(params: Params): string {
  const pairs = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

let onTokenNeeded: () => void = () => undefined;

/** Who is told that a token is needed. */
export function whenTokenNeeded(told: () => void): void {
  onTokenNeeded = told;
}

/** Keep a token until the browser is closed, for pictures as well, which a page asks for without headers. */
export function keepToken(token: string): void {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${COOKIE}=${encodeURIComponent(token.trim())}; SameSite=Strict; path=/${secure}`;
}

/** Whether a token is kept, good or not. */
export function hasToken(): boolean {
  return document.cookie.split("; ").some((pair) => pair.startsWith(`${COOKIE}=`) && pair.length > COOKIE.length + 1);
}

/** Whether the service takes the token that is kept. */
export async function tokenFits(): Promise<boolean> {
  try {
    return (await fetch(`${API}/collection`, { credentials: "same-origin" })).status !== 401;
  } catch {
    throw new ApiError(0, AWAY);
  }
}

async function ask<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await answered(path, init);
  return (answer.status === 204 ? null : await answer.json()) as T;
}

async function bytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await answered(path, signal ? { signal } : {})).arrayBuffer();
}

async function answered(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(`${API}${path}`, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, AWAY);
  }
  if (answer.ok) return answer;
  if (answer.status === 401) onTokenNeeded();
  throw new ApiError(answer.status, await detailOf(answer));
}

async function detailOf(answer: Response): Promise<string> {
  try {
    const told = (await answer.json()) as { detail?: unknown; title?: unknown };
    return String(told.detail ?? told.title ?? answer.statusText);
  } catch {
    return answer.statusText || `status ${answer.status}`;
  }
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return ask<T>(path, signal ? { signal } : {});
}

export function remove<T>(path: string): Promise<T> {
  return ask<T>(path, { method: "DELETE" });
}

export function post<T>(path: string, body: unknown, method: "POST" | "PATCH" = "POST"): Promise<T> {
  return ask<T>(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function upload<T>(path: string, file: Blob, signal?: AbortSignal): Promise<T> {
  const form = new FormData();
  form.append("file", file);
  return ask<T>(path, { method: "POST", body: form, ...(signal ? { signal } : {}) });
}

export const api = {
  collection: (signal?: AbortSignal) => get<CollectionStatus>("/collection", signal),
  items: (asked: ItemQuery & { cursor?: string | null; k?: number }, signal?: AbortSignal) =>
    get<ItemPage>(`/items${query({ ...asked })}`, signal),
  item: (id: number, signal?: AbortSignal) => get<ItemDetails>(`/items/${id}`, signal),
  similar: (id: number, k: number, signal?: AbortSignal) =>
    get<ItemHits>(`/items/${id}/similar${query({ k })}`, signal),
  annotateRegion: (id: number, region: string, k: number, signal?: AbortSignal) =>
    get<AnnotateResponse>(`/items/${id}/annotate${query({ region, k })}`, signal),
  decide: (decisions: DecisionRequest[]) => post<DecisionResult>("/decisions", { decisions }),
  decideAbove: (label: string | null, probability: number) =>
    post<DecisionResult>("/suggestions/accept", { label, min_probability: probability }),
  countAbove: (label: string, probability: number, signal?: AbortSignal) =>
    get<SuggestionCount>(`/suggestions/count${query({ label, min_probability: probability })}`, signal),
  undo: (entry: number | null) => post<UndoResult>("/undo", { entry }),
  journal: (before: number | null, k: number, signal?: AbortSignal) =>
    get<JournalPage>(`/journal${query({ k, before_id: before })}`, signal),
  search: (text: string, k: number, signal?: AbortSignal) => get<SearchResult>(`/search${query({ text, k })}`, signal),
  searchPicture: (file: Blob, region: string | null, k: number, signal?: AbortSignal) =>
    upload<PictureSearchResult>(`/search/picture${query({ k, region })}`, file, signal),
  labels: (start: string, k: number, signal?: AbortSignal) =>
    get<Completions>(`/labels${query({ prefix: start, k })}`, signal),
  map: (method: string, signal?: AbortSignal) => get<MapStatus>(`/map${query({ method })}`, signal),
  mapPoints: (method: string, version: string, signal?: AbortSignal) =>
    bytes(`/map/points${query({ method, version })}`, signal),
  mapLabels: (method: string, version: string, k: number, signal?: AbortSignal) =>
    get<LabelPositions>(`/map/labels${query({ method, version, k })}`, signal),
  mapLabel: (label: string, signal?: AbortSignal) => bytes(`/map/label${query({ label })}`, signal),
  facets: (signal?: AbortSignal) => get<Facets>("/facets", signal),
  jobs: (signal?: AbortSignal) => get<JobList>("/jobs", signal),
  startJob: (kind: JobKind, options: Record<string, unknown> = {}) => post<JobStatus>("/jobs", { kind, options }),
  stopJob: (id: number) => post<JobStatus>(`/jobs/${id}/stop`, {}),
  models: (signal?: AbortSignal) => get<ModelList>("/models", signal),
  model: (id: number, signal?: AbortSignal) => get<ModelDetails>(`/models/${id}`, signal),
  useModel: (id: number) => post<ModelList>(`/models/${id}/use`, {}),
};

/** Address of a small picture; those of the same content have the same address, so that browsers may keep them. */
export function thumbnail(item: { id: number; hash: string | null }, size: 256 | 1024): string {
  return `${API}/items/${item.id}/thumbnail${query({ size, v: item.hash?.slice(0, 12) })}`;
}

export function heat(id: number, label: string): string {
  return `${API}/items/${id}/heat${query({ label })}`;
}

export function original(id: number): string {
  return `${API}/items/${id}/file`;
}

export function jobEvents(id: number): string {
  return `${API}/jobs/${id}/events`;
}
