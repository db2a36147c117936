/** Client of the service: JSON requests, and one class of error. */

import type {
  AnnotateResponse,
  CollectionStatus,
  Completions,
  ReviewDecision,
  DecisionResult,
  Facets,
  ItemDetails,
  ItemHits,
  ItemPage,
  JobList,
  Job,
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

export type DecisionState = NonNullable<ReviewDecision["state"]>;
export type JobKind = Job["kind"];
export type MapMethod = MapStatus["method"];
type ItemParameters = NonNullable<operations["list_items"]["parameters"]["query"]>;
export type Sort = NonNullable<ItemParameters["sort"]>;

/** Filter of a list of items or of a search. */
export type ItemConditions = Omit<operations["search_by_words"]["parameters"]["query"], "text" | "k">;

/** Filter and order of a list of items. */
export interface ItemQuery extends Omit<ItemParameters, "cursor" | "k"> {
  selection?: string; // never sent: the number of a selection, see gallery/external-selection.ts
}

export const API = "/api/v1";
export const UNREACHABLE = "the service cannot be reached";
const COOKIE = "wsabie_token";

/** A refused request, or an unreachable service (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
    this.name = "ApiError";
  }

  /** True if the same request may succeed later. */
  get isTransient(): boolean {
    return [0, 401, 403, 408, 429].includes(this.status) || this.status >= 500; // or with another token
  }
}

type Params = Record<string, string | number | boolean | null | undefined>;

/** Build the query of an address; empty values are left out. */
export function buildQuery(params: Params): string {
  const pairs = Object.entries(params).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return text ? `?${text}` : "";
}

let tokenListener: () => void = () => undefined;

/** Set the function that is called when a token is required. */
export function onTokenRequired(listener: () => void): void {
  tokenListener = listener;
}

/** Keep a token in a cookie until the browser closes; requests for pictures have no headers. */
export function storeToken(token: string): void {
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${COOKIE}=${encodeURIComponent(token.trim())}; SameSite=Strict; path=/${secure}`;
}

/** True if a token is stored, valid or not. */
export function hasToken(): boolean {
  return document.cookie.split("; ").some((pair) => pair.startsWith(`${COOKIE}=`) && pair.length > COOKIE.length + 1);
}

/** True if the service accepts the stored token. */
export async function isTokenValid(): Promise<boolean> {
  try {
    return (await fetch(`${API}/collection`, { credentials: "same-origin" })).status !== 401;
  } catch {
    throw new ApiError(0, UNREACHABLE);
  }
}

async function requestJson<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await fetchResponse(path, init);
  return (response.status === 204 ? null : await response.json()) as T;
}

async function requestBytes(path: string, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await fetchResponse(path, signal ? { signal } : {})).arrayBuffer();
}

async function fetchResponse(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`${API}${path}`, { credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, UNREACHABLE);
  }
  if (response.ok) return response;
  if (response.status === 401) tokenListener();
  throw new ApiError(response.status, await readDetail(response));
}

async function readDetail(response: Response): Promise<string> {
  try {
    const problem = (await response.json()) as { detail?: unknown; title?: unknown };
    return String(problem.detail ?? problem.title ?? response.statusText);
  } catch {
    return response.statusText || `status ${response.status}`;
  }
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return requestJson<T>(path, signal ? { signal } : {});
}

export function remove<T>(path: string): Promise<T> {
  return requestJson<T>(path, { method: "DELETE" });
}

export function post<T>(path: string, body: unknown, method: "POST" | "PATCH" = "POST"): Promise<T> {
  return requestJson<T>(path, {
    method,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

function upload<T>(path: string, file: Blob, signal?: AbortSignal): Promise<T> {
  const form = new FormData();
  form.append("file", file);
  return requestJson<T>(path, { method: "POST", body: form, ...(signal ? { signal } : {}) });
}

export const api = {
  getCollection: (signal?: AbortSignal) => get<CollectionStatus>("/collection", signal),
  listItems: (filters: ItemQuery & { cursor?: string | null; k?: number }, signal?: AbortSignal) =>
    get<ItemPage>(`/items${buildQuery({ ...filters })}`, signal),
  getItem: (id: number, signal?: AbortSignal) => get<ItemDetails>(`/items/${id}`, signal),
  listSimilar: (id: number, k: number, signal?: AbortSignal) =>
    get<ItemHits>(`/items/${id}/similar${buildQuery({ k })}`, signal),
  annotateRegion: (id: number, region: string, k: number, signal?: AbortSignal) =>
    get<AnnotateResponse>(`/items/${id}/annotate${buildQuery({ region, k })}`, signal),
  decide: (decisions: ReviewDecision[]) => post<DecisionResult>("/decisions", { decisions }),
  acceptAbove: (label: string | null, probability: number) =>
    post<DecisionResult>("/suggestions/accept", { label, min_probability: probability }),
  countAbove: (label: string, probability: number, signal?: AbortSignal) =>
    get<SuggestionCount>(`/suggestions/count${buildQuery({ label, min_probability: probability })}`, signal),
  undo: (entry: number | null) => post<UndoResult>("/undo", { entry }),
  listJournal: (beforeId: number | null, k: number, signal?: AbortSignal) =>
    get<JournalPage>(`/journal${buildQuery({ k, before_id: beforeId })}`, signal),
  search: (text: string, k: number, conditions: ItemConditions, signal?: AbortSignal) =>
    get<SearchResult>(`/search${buildQuery({ ...conditions, text, k })}`, signal),
  searchByPicture: (file: Blob, region: string | null, k: number, signal?: AbortSignal) =>
    upload<PictureSearchResult>(`/search/picture${buildQuery({ k, region })}`, file, signal),
  completeLabels: (start: string, k: number, signal?: AbortSignal) =>
    get<Completions>(`/labels${buildQuery({ prefix: start, k })}`, signal),
  getMap: (method: string, signal?: AbortSignal) => get<MapStatus>(`/map${buildQuery({ method })}`, signal),
  getMapPoints: (method: string, version: string, signal?: AbortSignal) =>
    requestBytes(`/map/points${buildQuery({ method, version })}`, signal),
  listMapLabels: (method: string, version: string, k: number, signal?: AbortSignal) =>
    get<LabelPositions>(`/map/labels${buildQuery({ method, version, k })}`, signal),
  getMapCodes: (label: string, signal?: AbortSignal) => requestBytes(`/map/label${buildQuery({ label })}`, signal),
  getFacets: (signal?: AbortSignal) => get<Facets>("/facets", signal),
  listJobs: (signal?: AbortSignal) => get<JobList>("/jobs", signal),
  startJob: (kind: JobKind, options: Record<string, unknown> = {}) => post<Job>("/jobs", { kind, options }),
  stopJob: (id: number) => post<Job>(`/jobs/${id}/stop`, {}),
  listModels: (signal?: AbortSignal) => get<ModelList>("/models", signal),
  getModel: (id: number, signal?: AbortSignal) => get<ModelDetails>(`/models/${id}`, signal),
  activateModel: (id: number) => post<ModelList>(`/models/${id}/use`, {}),
};

/** Return the address of a thumbnail; equal content has one address, so that browsers can cache it. */
export function getThumbnailUrl(item: { id: number; hash: string | null }, size: 256 | 1024): string {
  return `${API}/items/${item.id}/thumbnail${buildQuery({ size, v: item.hash?.slice(0, 12) })}`;
}

export function getHeatMapUrl(id: number, label: string): string {
  return `${API}/items/${id}/heat${buildQuery({ label })}`;
}

export function getOriginalUrl(id: number): string {
  return `${API}/items/${id}/file`;
}

export function getJobEventsUrl(id: number): string {
  return `${API}/jobs/${id}/events`;
}
