/** Build the key of a decision: the item and the label. */
export const buildDecisionKey = (item: number, label: string): string => `${item} ${label}`;
