/** Theme of the pages: light, dark, or that of the system. */

export type Theme = "system" | "light" | "dark";
const STORAGE_KEY = "wsabie.theme";

export function readTheme(): Theme {
  const attribute = document.documentElement.dataset["theme"];
  return attribute === "light" || attribute === "dark" ? attribute : "system";
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme;
  try {
    if (theme === "system") localStorage.removeItem(STORAGE_KEY);
    else localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // Without storage the next visit follows the system.
  }
}

const matchDarkScheme = () => matchMedia("(prefers-color-scheme: dark)");

/** True if the page is dark, by choice or by the system. */
export function isDark(): boolean {
  const theme = readTheme();
  return theme === "dark" || (theme === "system" && matchDarkScheme().matches);
}

/** Call `listener` at each change of the theme; return a function that stops this. */
export function watchTheme(listener: () => void): () => void {
  const observer = new MutationObserver(listener);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const scheme = matchDarkScheme();
  scheme.addEventListener("change", listener);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", listener);
  };
}
