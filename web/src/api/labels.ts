/** Requests about labels. */

import { get, post, query, remove } from "./client";
import type { ChangeResult, ExclusionResult, LabelDetails, LabelEditRequest, LabelNeighbours, LabelPage, MergeResult, operations, ProposalPage } from "./types";

export type RowQuery = Omit<NonNullable<operations["list_labels"]["parameters"]["query"]>, "offset" | "k">;

export const labelApi = {
  rows: (asked: RowQuery, offset: number, k: number, signal?: AbortSignal) =>
    get<LabelPage>(`/vocabulary${query({ ...asked, offset, k })}`, signal),
  whole: (id: number, signal?: AbortSignal) => get<LabelDetails>(`/labels/${id}`, signal),
  near: (id: number, k: number, signal?: AbortSignal) =>
    get<LabelNeighbours>(`/labels/${id}/neighbours${query({ k })}`, signal),
  edit: (id: number, changes: LabelEditRequest) => post<ChangeResult>(`/labels/${id}`, changes, "PATCH"),
  remove: (id: number) => remove<ChangeResult>(`/labels/${id}${query({ with_tags: true })}`), // tags of files that are away, too
  merge: (labels: number[], target: number) =>
    post<MergeResult>("/labels/merge", { labels, target }),
  apart: (labels: number[]) => post<ExclusionResult>("/labels/merge-exclusions", { labels }),
  proposals: (offset: number, k: number, signal?: AbortSignal) =>
    get<ProposalPage>(`/labels/proposals${query({ offset, k })}`, signal),
};
