/** Labels: what the service answers about them, and asking for it. */

import { get, post, query, remove } from "./client";

export interface LabelRow {
  id: number;
  name: string;
  language: string;
  wordnet: string;
  parent: string | null;
  synonyms: string[];
  items: number;
  rejected: number;
  suggested: number; // suggestions of models that people decided
  right: number; // those that they accepted
  children: number;
}

export interface OtherLabel {
  id: number;
  name: string;
  language: string;
  items: number;
}

export interface PicturedLabel extends OtherLabel {
  pictures: { id: number; hash: string | null }[];
}

export interface NearLabel extends PicturedLabel {
  cosine: number;
}

export interface HeldOut {
  model: number;
  known: boolean;
  suggested: number;
  right: number;
  limits: { precision: number; probability: number | null; own: boolean }[];
}

export interface LabelDetail extends LabelRow {
  names: { name: string; language: string }[];
  above: OtherLabel[];
  below: OtherLabel[];
  apart: OtherLabel[];
  waiting: number;
  held_out: HeldOut | null;
}

export interface LabelEdit {
  name?: string;
  language?: string;
  wordnet?: string;
  parent?: string;
  add?: { name: string; language: string }[];
  remove?: string[];
}

export interface Proposal {
  into: PicturedLabel;
  labels: PicturedLabel[];
  score: number;
  why: { one: string; other: string; score: number; evidence: { kind: string; weight: number; told: string }[] }[];
}

export interface Proposals {
  made: string | null;
  since: number;
  other_model: boolean;
  not_asked: Record<string, string>;
  total: number;
  proposals: Proposal[];
}

export interface Changed {
  entry: number | null;
}

export interface RowQuery {
  containing?: string;
  order?: string;
  below?: number;
}

export const labelApi = {
  rows: (asked: RowQuery, after: number, k: number, signal?: AbortSignal) =>
    get<{ total: number; labels: LabelRow[] }>(`/vocabulary${query({ ...asked, after, k })}`, signal),
  whole: (id: number, signal?: AbortSignal) => get<LabelDetail>(`/labels/${id}`, signal),
  near: (id: number, k: number, signal?: AbortSignal) =>
    get<{ neighbours: NearLabel[] }>(`/labels/${id}/neighbours${query({ k })}`, signal),
  edit: (id: number, changes: LabelEdit) => post<Changed>(`/labels/${id}`, changes, "PATCH"),
  remove: (id: number) => remove<Changed>(`/labels/${id}${query({ with_tags: true })}`), // tags of files that are away, too
  merge: (labels: number[], into: number) =>
    post<Changed & { moved: number; together: number }>("/labels/merge", { labels, into }),
  apart: (labels: number[]) => post<Changed & { pairs: number }>("/labels/apart", { labels }),
  proposals: (after: number, k: number, signal?: AbortSignal) =>
    get<Proposals>(`/labels/proposals${query({ after, k })}`, signal),
};
