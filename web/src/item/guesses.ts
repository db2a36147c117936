/** Guesses: suggestions of a model that knows labels by their names alone. */

import { formatPercent } from "../base/format";
import { createStore } from "../base/store";

/** True while such a model is in use. */
export const areGuesses = createStore(false);

export const GUESS = "guess from the name";
export const GUESS_EXPLANATION = "No model has learned this label yet. It is suggested by its name alone, so it is often wrong, most of all between kinds that look alike.";

/** Format the probability of a suggestion on a picture. */
export function formatSuggestion(probability: number, isGuess: boolean): string {
  return isGuess ? `${formatPercent(probability)}, guess` : formatPercent(probability);
}
