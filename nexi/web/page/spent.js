// What a run has spent and what is left of its limits.
import { $, element } from "./core.js";
import { state } from "./state.js";
import { formatNumber, say } from "./texts.js";

export const formatMoney = (x) => `$${x < 0.1 ? x.toFixed(4) : x.toFixed(2)}`;
export const formatSeconds = (x) => (x < 60 ? say("spent.seconds", { s: Math.floor(x) }) : say("spent.minutes", { min: Math.floor(x / 60), s: Math.floor(x % 60) }));

// A row for each limit: its name, what is spent of it, and what is left; the limits of the question go before those of the form.
export function spentRows(spent, limits = {}, asked = {}) {
  const left = (used, limit, words) => (limit ? say("spent.left", { amount: words(Math.max(0, limit - (used || 0))) }) : "");
  return [
    [say("spent.time"), formatSeconds(spent.seconds || 0), left(spent.seconds, asked.time_target || limits.time_target, formatSeconds)],
    [say("spent.tokens"), formatNumber(spent.tokens || 0), left(spent.tokens, limits.max_tokens, formatNumber)],
    [say("spent.cost"), spent.cost ? formatMoney(spent.cost) : "–", left(spent.cost, asked.max_cost || limits.max_cost, formatMoney)],
    [say("spent.calls"), String(spent.calls || 0), left(spent.calls, limits.max_model_calls, String)],
    [say("spent.pages"), String(spent.pages || 0), left(spent.pages, limits.max_pages, String)],
  ];
}

// The same in one line, for when it is folded.
export function sumSpent(spent) {
  return [formatSeconds(spent.seconds || 0), spent.tokens ? say("count.tokens", { n: spent.tokens }) : "", spent.cost ? formatMoney(spent.cost) : "", spent.pages ? say("count.pages", { n: spent.pages }) : ""].filter(Boolean).join(" · ");
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
