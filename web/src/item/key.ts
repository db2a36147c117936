/** By what a decision is known: the item and the label. */
export const keyOf = (item: number, label: string): string => `${item} ${label}`;
