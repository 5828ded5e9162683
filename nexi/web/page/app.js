// The page: ask, watch, read, check. Everything shown is text or HTML that the server made safe; nothing is loaded from elsewhere.
const $ = (id) => document.getElementById(id);
const state = { id: "", source: null, last: "", text: "", started: 0, bars: [], people: new Map(), timer: 0, rendering: false, continues: "" };

const token = () => sessionStorage.getItem("nexi-token") || "";

async function call(path, options = {}) {
  const headers = { ...(options.body ? { "content-type": "application/json" } : {}), ...(token() ? { authorization: `Bearer ${token()}` } : {}) };
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) return askForToken(path, options);
  const data = answer.headers.get("content-type")?.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(problemOf(data) || `the server answered ${answer.status}`);
  return data;
}

async function askForToken(path, options) {
  const given = prompt("This nexi wants a token:");
  if (!given) throw new Error("no token was given");
  sessionStorage.setItem("nexi-token", given);
  return call(path, options);
}

function problemOf(data) {
  if (!data || typeof data !== "object") return "";
  const e = data.error && typeof data.error === "object" ? data.error : data;
  return [e.message || e.error, e.cause, e.fix].filter((x) => typeof x === "string" && x).join(". ");
}

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

// asking

function orderFromForm() {
  const effort = $("effort").value, words = $("sites").value.split(/[\s,]+/).filter(Boolean);
  const options = { time_range: $("time").value };
  const sites = words.filter((w) => !w.startsWith("-")), excluded = words.filter((w) => w.startsWith("-")).map((w) => w.slice(1));
  if (sites.length) options.sites = sites;
  if (excluded.length) options.excluded_sites = excluded;
  if (effort === "deep") options.depth = Number($("depth").value); else options.effort = effort;
  const order = { question: $("question").value.trim(), mode: effort === "deep" ? "research" : "search", options };
  if (state.continues) order.continues = state.continues;
  return order;
}

async function ask(event) {
  event?.preventDefault();
  const order = orderFromForm();
  if (!order.question) return;
  clearRun(order.question);
  try {
    const run = await call("/v1/runs", { method: "POST", body: JSON.stringify(order) });
    history.pushState({}, "", `/runs/${run.id}`);
    follow(run.id);
  } catch (error) { note(error.message, true); idle(); }
}

function clearRun(question) {
  state.source?.close();
  Object.assign(state, { id: "", last: "", text: "", started: performance.now(), bars: [], people: new Map(), source: null, continues: "" });
  for (const id of ["answer", "notes", "source-list", "timeline", "researchers", "exports"]) $(id).replaceChildren();
  for (const id of ["sources", "timing", "tools", "researchers"]) $(id).hidden = true;
  $("figures").textContent = ""; $("status").textContent = "Starting"; $("asked").textContent = question;
  $("run").hidden = false; $("runs").hidden = true; $("setup").hidden = true;
  $("stop").hidden = false; $("go").disabled = true; $("hint").hidden = true;
  document.title = `${question.slice(0, 60)} - nexi`;
}

function idle() { $("stop").hidden = true; $("go").disabled = false; state.source?.close(); state.source = null; }

// watching

function follow(id) {
  state.id = id;
  const from = state.last ? `?last_event_id=${encodeURIComponent(state.last)}` : "";
  if (token()) return followByFetch(id, from);
  const source = state.source = new EventSource(`/v1/runs/${id}/events${from}`);
  for (const kind of KINDS) source.addEventListener(kind, (event) => take(kind, event.data, event.lastEventId));
  source.onerror = () => {
    source.close();
    if (state.source === source && state.id === id) { $("status").textContent = "Reconnecting"; setTimeout(() => state.source === source && follow(id), 1000); }
  };
}

async function followByFetch(id, from) {
  const mine = state.source = { close() { mine.closed = true; } };
  try {
    const answer = await fetch(`/v1/runs/${id}/events${from}`, { headers: { authorization: `Bearer ${token()}` } });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done || mine.closed) break;
      const frames = (rest + value).split("\n\n");
      rest = frames.pop();
      for (const frame of frames) {
        const field = (name) => frame.split("\n").find((l) => l.startsWith(`${name}: `))?.slice(name.length + 2) || "";
        if (field("event")) take(field("event"), field("data"), field("id"));
      }
    }
  } catch { /* the connection went away: tried again below */ }
  if (state.source === mine && !mine.closed) setTimeout(() => state.source === mine && follow(id), 1000);
}

const KINDS = ["run_started", "run_resumed", "model_asked", "model_replied", "model_failed", "tool_started", "tool_finished", "search_finished", "page_fetched", "page_failed",
  "source_numbered", "agenda_set", "researcher_started", "researcher_reported", "researcher_failed", "round_evaluated", "limit_reached", "warned",
  "answer_checked", "run_finished", "run_failed", "text_delta", "status_delta"];

function take(kind, data, id) {
  state.last = id || state.last;
  const event = JSON.parse(data), now = (performance.now() - state.started) / 1000;
  const bar = (lane, label, failed) => { state.bars.push({ lane, who: event.agent || "", label, start: Math.max(0, now - (event.seconds || 0)), end: now, failed }); drawSoon(); };
  switch (kind) {
    case "run_started": $("asked").textContent = event.query; break;
    case "text_delta": state.text += event.text; renderSoon(); break;
    case "status_delta": say(event.text); break;
    case "model_asked": say(event.purpose === "answer" ? "Thinking" : event.purpose); break;
    case "model_replied": bar("model", `call ${event.call}`); break;
    case "model_failed": bar("model", event.message, true); break;
    case "search_finished": say(`Found ${event.hits.length} results for “${event.query}”`); bar("search", event.query, !event.hits.length); break;
    case "page_fetched": if (!event.ahead) say(`Read ${hostOf(event.url)}`); bar("page", hostOf(event.url)); break;
    case "page_failed": bar("page", `${hostOf(event.url)}: ${event.message}`, true); break;
    case "agenda_set": say(`Planned ${event.tasks.length} tasks`); break;
    case "researcher_started": person(event.researcher, event.task, "at work"); break;
    case "researcher_reported": person(event.researcher, "", "reported"); break;
    case "researcher_failed": person(event.researcher, "", `failed: ${event.message}`); break;
    case "warned": if (!event.agent) note(event.message); break;
    case "run_finished": finished(); break;
    case "run_failed": note([event.message, event.cause, event.fix].filter(Boolean).join(". "), true); $("status").textContent = "No answer"; idle(); tools(); break;
  }
}

const hostOf = (url) => { try { return new URL(url).hostname; } catch { return url; } };
function say(text) { $("status").textContent = text; }
function note(text, isError = false) { $("notes").append(element("p", { textContent: text, className: isError ? "error" : "" })); }

function person(name, task, doing) {
  const known = state.people.get(name) || { task };
  state.people.set(name, { task: task || known.task, doing });
  $("researchers").hidden = false;
  $("researchers").replaceChildren(...[...state.people].map(([who, p]) => element("li", { textContent: `${who} ${p.doing}: ${p.task}`, dir: "auto" })));
}

function renderSoon() {
  if (state.timer || state.rendering) return;
  state.timer = setTimeout(async () => {
    state.timer = 0; state.rendering = true;
    const text = state.text, id = state.id;
    try {
      const made = await call("/page/render", { method: "POST", body: JSON.stringify({ text }) });
      if (id === state.id && state.source) $("answer").innerHTML = made.html; // made safe by the server
    } catch { $("answer").textContent = text; }
    state.rendering = false;
    if (state.text !== text) renderSoon();
  }, 250);
}

// reading and checking

async function finished() {
  idle();
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

function sourceItem(source) {
  const link = element("a", { href: source.link || source.url, textContent: source.title || source.url, rel: "noreferrer noopener", target: "_blank", dir: "auto" });
  const about = [source.host, source.published, source.verdict.replaceAll("_", " ")].filter(Boolean).join(" · ");
  return element("li", { id: `source-${source.n}` }, `[${source.n}] `, link, element("br"), element("span", { className: `site v-${source.verdict}`, textContent: about }));
}

async function showEvidence(claim, number) {
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

function tools() {
  $("tools").hidden = false;
  const forms = [["md", "Markdown"], ["html", "HTML"], ["pdf", "PDF"], ["json", "JSON"], ["ris", "RIS"], ["bibtex", "BibTeX"]];
  $("exports").replaceChildren(...forms.map(([form, name]) => {
    const link = element("a", { href: `/page/runs/${state.id}/export?format=${form}`, textContent: name, download: "" });
    if (token()) link.onclick = (event) => { event.preventDefault(); save(form); };
    return link;
  }));
}

async function save(form) {
  const answer = await fetch(`/page/runs/${state.id}/export?format=${form}`, { headers: { authorization: `Bearer ${token()}` } });
  if (!answer.ok) return note(problemOf(await answer.json()) || "the export failed", true);
  const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: `nexi-${state.id}.${form}` });
  link.click();
  URL.revokeObjectURL(link.href);
}

// the timeline

let drawing = 0;
function drawSoon() { if (!drawing) drawing = requestAnimationFrame(() => { drawing = 0; draw(); }); }

function draw() {
  const bars = state.bars.slice(-2000), width = 800, row = 14, left = 110;
  if (!bars.length) return;
  const lanes = [...new Set(bars.map((b) => `${b.who} ${b.lane}`.trim()))], end = Math.max(...bars.map((b) => b.end), 0.1);
  const scale = (width - left - 10) / end, ns = "http://www.w3.org/2000/svg";
  const make = (tag, attributes, text) => { const made = document.createElementNS(ns, tag); for (const [k, v] of Object.entries(attributes)) made.setAttribute(k, v); if (text) made.textContent = text; return made; };
  const svg = make("svg", { viewBox: `0 0 ${width} ${lanes.length * row + 18}` });
  lanes.forEach((lane, i) => svg.append(make("text", { x: 0, y: i * row + 11 }, lane)));
  for (const b of bars) {
    const i = lanes.indexOf(`${b.who} ${b.lane}`.trim());
    const rect = make("rect", { x: left + b.start * scale, y: i * row + 2, width: Math.max(1.5, (b.end - b.start) * scale), height: row - 4, rx: 2, class: b.failed ? "lane-failed" : `lane-${b.lane}` });
    rect.append(make("title", {}, `${b.label} (${(b.end - b.start).toFixed(2)} s)`));
    svg.append(rect);
  }
  svg.append(make("text", { x: left, y: lanes.length * row + 14 }, "0 s"), make("text", { x: width - 50, y: lanes.length * row + 14 }, `${end.toFixed(1)} s`));
  $("timeline").replaceChildren(svg);
  $("timing").hidden = false;
}

// keeping

async function showRuns() {
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

function runItem(run) {
  const link = element("a", { href: `/runs/${run.id}`, textContent: run.question || run.id, className: "q", dir: "auto" });
  const remove = element("button", { type: "button", textContent: "Delete" });
  remove.setAttribute("aria-label", `Delete run ${run.id}`);
  const item = element("li", {}, link, element("span", { className: "state", textContent: `${run.mode} · ${run.state}` }), remove);
  remove.onclick = async () => { await call(`/v1/runs/${run.id}`, { method: "DELETE" }); item.remove(); };
  return item;
}

async function showSetup() {
  const shown = $("setup").hidden;
  $("setup").hidden = !shown; $("runs").hidden = true;
  $("show-setup").setAttribute("aria-expanded", String(shown));
  if (!shown) return;
  const parts = await call("/page/setup");
  $("setup-list").replaceChildren(...parts.flatMap((p) => [element("dt", { textContent: p.name }), element("dd", { textContent: p.value })]));
}

function hint(text) { $("hint").textContent = text; $("hint").hidden = false; }

async function open(id) {
  clearRun("");
  state.id = id;
  try {
    const run = await call(`/v1/runs/${id}`);
    $("asked").textContent = run.question; $("question").value = run.question;
    document.title = `${run.question.slice(0, 60)} - nexi`;
    if (run.state === "finished") return await finished();
    if (run.state === "running") return follow(id);
    idle(); tools();
    note(run.error ? [run.error.message, run.error.cause, run.error.fix].filter(Boolean).join(". ") : `This run is ${run.state}. nexi resume ${id} goes on with it.`, true);
    $("status").textContent = "";
  } catch (error) { note(error.message, true); idle(); }
}

$("ask").addEventListener("submit", ask);
$("question").addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) ask(event); });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !$("stop").hidden && !$("evidence").open) $("stop").click(); });
$("stop").addEventListener("click", () => state.id && call(`/v1/runs/${state.id}/stop`, { method: "POST" }).then(() => say("Stopping: the answer comes from what was read"), (e) => note(e.message, true)));
$("effort").addEventListener("change", () => { document.querySelector(".deep").hidden = $("effort").value !== "deep"; });
$("answer").addEventListener("click", (event) => {
  const target = event.target.closest("[data-claim]");
  if (target) { event.preventDefault(); showEvidence(Number(target.dataset.claim), Number(target.dataset.n || 0)); }
});
$("copy").addEventListener("click", () => navigator.clipboard?.writeText(state.run?.text || state.text).then(() => say("Copied")));
$("again").addEventListener("click", () => { $("question").value = $("asked").textContent; $("question").focus(); });
$("follow").addEventListener("click", () => { state.continues = state.id; $("question").value = ""; $("question").placeholder = "A follow-up question"; $("question").focus(); });
$("show-runs").addEventListener("click", showRuns);
$("show-setup").addEventListener("click", showSetup);
window.addEventListener("popstate", () => location.reload());
const here = location.pathname.match(/^\/runs\/([0-9a-f]{6})$/);
if (here) open(here[1]); else $("question").focus();
