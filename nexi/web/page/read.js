// Reading and checking: the answer with its evidence, its sources and its exports.
import { $, call, element, hint, note, problemOf, state, token } from "./core.js";
import { draw } from "./timeline.js";

export async function showAnswer() {
  const run = await call(`/page/runs/${state.id}`);
  $("answer").innerHTML = run.html; // made safe by the server
  $("figures").textContent = [run.figures, `${run.seconds} s`, `${run.tokens} tokens`, run.cost ? `$${run.cost.toFixed(4)}` : ""].filter(Boolean).join(" · ");
  $("status").textContent = run.stop === "final_answer" || run.stop === "plain_answer" ? "" : `Ended early: ${run.stop.replaceAll("_", " ")}`;
  state.bars = run.timeline; draw();
  $("source-list").replaceChildren(...run.sources.map(sourceItem));
  $("sources").hidden = !run.sources.length;
  if (run.model === "extractive") hint("Without a model: passages from the pages. Add one with nexi config.");
  tools();
  state.run = run;
}

export function sourceItem(source) {
  const link = element("a", { href: source.link || source.url, textContent: source.title || source.url, rel: "noreferrer noopener", target: "_blank", dir: "auto" });
  const about = [source.host, source.published, source.verdict.replaceAll("_", " ")].filter(Boolean).join(" · ");
  return element("li", { id: `source-${source.n}` }, `[${source.n}] `, link, element("br"), element("span", { className: `site v-${source.verdict}`, textContent: about }));
}

export async function showEvidence(claim, number) {
  const found = state.run?.claims[claim];
  if (!found) return;
  const body = $("evidence-body");
  body.replaceChildren(element("p", { textContent: found.text, dir: "auto" }), element("p", { className: `v-${found.verdict}`, textContent: `${found.verdict.replaceAll("_", " ")}: ${found.reason}` }));
  for (const one of found.evidence.filter((e) => !number || e.n === number)) {
    const part = element("section", {}, element("h3", { textContent: `[${one.n}] ${one.verdict.replaceAll("_", " ")}` }));
    body.append(part);
    try {
      const passage = await call(`/page/runs/${state.id}/passage?source=${one.n}&start=${one.start}&end=${one.end}`);
      const box = element("div", { className: "passage", tabIndex: 0, dir: "auto" });
      box.append(passage.before, element("mark", { textContent: passage.span }), passage.after);
      part.append(box, element("p", {}, element("a", { href: passage.link, textContent: "Open the page there", target: "_blank", rel: "noreferrer noopener" })));
      requestAnimationFrame(() => box.querySelector("mark").scrollIntoView({ block: "center" }));
    } catch (error) { part.append(element("p", { textContent: error.message })); }
  }
  $("evidence").showModal();
}

export function tools() {
  $("tools").hidden = false;
  const forms = [["md", "Markdown"], ["html", "HTML"], ["pdf", "PDF"], ["json", "JSON"], ["ris", "RIS"], ["bibtex", "BibTeX"]];
  $("exports").replaceChildren(...forms.map(([form, name]) => {
    const link = element("a", { href: `/page/runs/${state.id}/export?format=${form}`, textContent: name, download: "" });
    if (token()) link.onclick = (event) => { event.preventDefault(); save(form); };
    return link;
  }));
}

export async function save(form) {
  const answer = await fetch(`/page/runs/${state.id}/export?format=${form}`, { headers: { authorization: `Bearer ${token()}` } });
  if (!answer.ok) return note(problemOf(await answer.json()) || "the export failed", true);
  const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `nexi-${state.id}.${form}` });
  link.click();
  URL.revokeObjectURL(link.href);
}
