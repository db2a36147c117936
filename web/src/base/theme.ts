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
