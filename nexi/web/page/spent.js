// What a run has spent and what is left of its limits.
import { $, element, plural } from "./core.js";
import { state } from "./state.js";

export const formatMoney = (x) => `$${x < 0.1 ? x.toFixed(4) : x.toFixed(2)}`;
export const formatSeconds = (x) => (x < 60 ? `${Math.floor(x)} s` : `${Math.floor(x / 60)} min ${Math.floor(x % 60)} s`);
const grouped = (x) => x.toLocaleString("en");

// A row for each limit: its name, what is spent of it, and what is left; the limits of the question go before those of the form.
export function spentRows(spent, limits = {}, asked = {}) {
  const left = (used, limit, words) => (limit ? `${words(Math.max(0, limit - (used || 0)))} left` : "");
  return [
    ["Time", formatSeconds(spent.seconds || 0), left(spent.seconds, asked.time_target || limits.time_target, formatSeconds)],
    ["Tokens", grouped(spent.tokens || 0), left(spent.tokens, limits.max_tokens, grouped)],
    ["Cost", spent.cost ? formatMoney(spent.cost) : "–", left(spent.cost, asked.max_cost || limits.max_cost, formatMoney)],
    ["Model calls", String(spent.calls || 0), left(spent.calls, limits.max_model_calls, String)],
    ["Pages", String(spent.pages || 0), left(spent.pages, limits.max_pages, String)],
  ];
}

// The same in one line, for when it is folded.
export function sumSpent(spent) {
  return [formatSeconds(spent.seconds || 0), spent.tokens ? `${grouped(spent.tokens)} tokens` : "", spent.cost ? formatMoney(spent.cost) : "", spent.pages ? plural(spent.pages, "page") : ""].filter(Boolean).join(" · ");
}

export function showSpent(spent) {
  const sum = sumSpent(spent);
  if ($("cost-sum").textContent !== sum) $("cost-sum").textContent = sum;
  const list = $("spent");
  spentRows(spent, state.form?.limits, state.asked).forEach(([name, value, left], i) => {
    const box = list.children[i] ?? list.appendChild(element("div", {}, element("dt", { textContent: name }), element("dd", {}, element("b"), element("small"))));
    const [big, small] = box.lastChild.children;
    if (big.textContent !== value) big.textContent = value;
    if (small.textContent !== left) small.textContent = left;
  });
}
