// Addresses: every panel and every run has one, and Back goes to the one before. Which parts to show is for who asks here.
const PANELS = { "/history": "runs", "/knowledge": "knowledge", "/check": "check", "/table": "table", "/profile": "account", "/setup": "setup" };

// What an address names: a panel, a run by its id, a space, an id that no run can have, or the start.
export function parseAddress(path) {
  if (PANELS[path]) return { panel: PANELS[path] };
  const space = path.match(/^\/spaces\/([^/]+)\/?$/)?.[1];
  if (space !== undefined) return { space: decode(space) };
  const id = path.match(/^\/runs\/([^/]+)\/?$/)?.[1];
  if (id === undefined) return {};
  return /^([0-9a-f]{6}|[0-9a-f]{32})$/.test(id) ? { run: id } : { missing: decode(id) };
}

function decode(text) { try { return decodeURIComponent(text); } catch { return text; } }

export const panelAddress = (name) => Object.keys(PANELS).find((path) => PANELS[path] === name);
export const runAddress = (id) => (id ? `/runs/${id}` : "/");

// Changes the address without loading the page; one that stands there already is not added again.
export function visit(path) { if (location.pathname + location.hash !== path) history.pushState({}, "", path); }
