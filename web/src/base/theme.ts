/** Light, dark, or as the system has it. */

export type Theme = "system" | "light" | "dark";
const KEY = "wsabie.theme";

export function chosenTheme(): Theme {
  const told = document.documentElement.dataset["theme"];
  return told === "light" || told === "dark" ? told : "system";
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  try {
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // A browser that keeps nothing follows the system next time.
  }
}

const system = () => matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now, by choice or as the system has it. */
export function isDark(): boolean {
  const theme = chosenTheme();
  return theme === "dark" || (theme === "system" && system().matches);
}

/** Calls when another theme is chosen, or the system changes its own; returns how to stop that. */
export function onTheme(changed: () => void): () => void {
  const watch = new MutationObserver(changed);
  watch.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const dark = system();
  dark.addEventListener("change", changed);
  return () => {
    watch.disconnect();
    dark.removeEventListener("change", changed);
  };
}
