// The theme, kept in the browser: light, dark, or like the system.
const KEY = "nexi-theme", CHOSEN = ["light", "dark"];

export function readTheme() {
  try { return CHOSEN.find((name) => name === localStorage.getItem(KEY)) || "system"; } catch { return "system"; } // a browser that keeps nothing
}

export function chooseTheme(name) {
  localStorage.setItem(KEY, name);
  applyTheme();
}

export function applyTheme() {
  const theme = readTheme();
  if (theme === "system") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
}
