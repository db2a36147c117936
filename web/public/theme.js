// Before anything is painted: the colours that were chosen, if any were.
try {
  const chosen = localStorage.getItem("wsabie.theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system.
}
