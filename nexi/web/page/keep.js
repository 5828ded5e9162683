// Keeping: the list of runs, and what is set up.
import { $, call, element } from "./core.js";

export async function showRuns() {
  const shown = $("runs").hidden;
  $("runs").hidden = !shown; $("setup").hidden = true;
  $("show-runs").setAttribute("aria-expanded", String(shown));
  if (!shown) return;
  const { runs } = await call("/v1/runs?limit=200");
  const fill = () => {
    const wanted = $("runs-filter").value.toLowerCase();
    $("runs-list").replaceChildren(...runs.filter((r) => (r.question || "").toLowerCase().includes(wanted)).map(runItem));
  };
  $("runs-filter").oninput = fill;
  fill();
}

export function runItem(run) {
  const link = element("a", { href: `/runs/${run.id}`, textContent: run.question || run.id, className: "q", dir: "auto" });
  const remove = element("button", { type: "button", textContent: "Delete" });
  remove.setAttribute("aria-label", `Delete run ${run.id}`);
  const item = element("li", {}, link, element("span", { className: "state", textContent: `${run.mode} · ${run.state}` }), remove);
  remove.onclick = async () => { await call(`/v1/runs/${run.id}`, { method: "DELETE" }); item.remove(); };
  return item;
}

export async function showSetup() {
  const shown = $("setup").hidden;
  $("setup").hidden = !shown; $("runs").hidden = true;
  $("show-setup").setAttribute("aria-expanded", String(shown));
  if (!shown) return;
  const parts = await call("/page/setup");
  $("setup-list").replaceChildren(...parts.flatMap((p) => [element("dt", { textContent: p.name }), element("dd", { textContent: p.value })]));
}
