/** Requests about labels. */

import { get, post, buildQuery, remove } from "./client";
import type { ChangeResult, ExclusionResult, LabelDetails, LabelEditRequest, LabelNeighbours, LabelPage, MergeResult, operations, ProposalPage } from "./types";

export type RowQuery = Omit<NonNullable<operations["list_labels"]["parameters"]["query"]>, "offset" | "k">;

export const labelApi = {
  list: (filters: RowQuery, offset: number, k: number, signal?: AbortSignal) =>
    get<LabelPage>(`/vocabulary${buildQuery({ ...filters, offset, k })}`, signal),
  get: (id: number, signal?: AbortSignal) => get<LabelDetails>(`/labels/${id}`, signal),
  listNeighbours: (id: number, k: number, signal?: AbortSignal) =>
    get<LabelNeighbours>(`/labels/${id}/neighbours${buildQuery({ k })}`, signal),
  edit: (id: number, changes: LabelEditRequest) => post<ChangeResult>(`/labels/${id}`, changes, "PATCH"),
  remove: (id: number) => remove<ChangeResult>(`/labels/${id}${buildQuery({ with_tags: true })}`), // tags of missing files, too
  merge: (labels: number[], target: number) =>
    post<MergeResult>("/labels/merge", { labels, target }),
  excludeMerge: (labels: number[]) => post<ExclusionResult>("/labels/merge-exclusions", { labels }),
  listProposals: (offset: number, k: number, signal?: AbortSignal) =>
    get<ProposalPage>(`/labels/proposals${buildQuery({ offset, k })}`, signal),
};
