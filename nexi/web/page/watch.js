// Watching: the events of a run as they come, taken up again where a connection broke, without a gap and without a repeat.
// Events are taken in short slices and painted a few times a second, so that a run of ten thousand never holds up the page.
import { $, call, element, hostOf, note, plural, say, signed, state } from "./core.js";
import { hidePlan, showPlan } from "./plan.js";
import { showAnswer, tools } from "./read.js";
import { addBar } from "./timeline.js";

const SLICE_MS = 8, PAINT_MS = 200, LONGEST_PAUSE_MS = 3000, PATIENCE = 8, WHOLE_CHARS = 8000, MOST_CHARS = 390000, MOST_PEOPLE = 60;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function idle() {
  $("stop").hidden = true;
  $("go").disabled = false;
  state.source?.close();
  state.source = null;
  clearInterval(ticking);
  document.body.classList.remove("running");
}

// following

let queue = [], taken = 0, draining = false, waiting = [];

export async function follow(id) {
  const ended = new AbortController(), mine = { close: () => ended.abort() };
  state.source?.close();
  state.source = mine;
  state.id = id;
  queue = []; taken = 0;
  ticking = tick();
  document.body.classList.add("running");
  for (let tries = 0, left = 0; state.source === mine; tries++) {
    const before = state.last;
    try { await read(id, ended.signal); } catch { /* the connection went away */ }
    await drained();
    if (state.source !== mine) return;
    if (state.last !== before) tries = left = 0;
    say("Connection lost: reconnecting");
    const how = await stateOf(id);
    if (state.source !== mine) return;
    if (how === "finished") return end();
    if (how === "failed" || (how === "unfinished" && ++left > PATIENCE)) return broken(id);
    await pause(Math.min(300 * 1.5 ** tries, LONGEST_PAUSE_MS));
  }
}

async function read(id, signal) {
  const answer = await fetch(`/v1/runs/${id}/events`, { headers: signed({ "last-event-id": state.last || "0" }), signal, cache: "no-store" });
  if (answer.status !== 200) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const frames = (rest + value).split("\n\n");
    rest = frames.pop();
    for (const frame of frames) queue.push(frame);
    drainSoon();
  }
}

async function stateOf(id) {
  try {
    const answer = await fetch(`/v1/runs/${id}`, { headers: signed(), cache: "no-store" });
    return answer.ok ? (await answer.json()).state : "";
  } catch { return ""; }
}

function drainSoon() {
  if (draining) return;
  draining = true;
  setTimeout(drain);
}

function drain() {
  const until = performance.now() + SLICE_MS;
  while (taken < queue.length && performance.now() < until) takeFrame(queue[taken++]);
  if (taken < queue.length) return void setTimeout(drain);
  queue = []; taken = 0; draining = false;
  for (const go of waiting.splice(0)) go();
}

const drained = () => (draining ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve());

function takeFrame(frame) {
  const at = frame.indexOf("\nevent: "), to = frame.indexOf("\ndata: ");
  if (at < 0 || to < 0) return;
  const kind = frame.slice(at + 8, to), id = frame.slice(4, at);
  if (kind in TAKES) TAKES[kind](JSON.parse(frame.slice(to + 7)), parseInt(id, 10));
  state.last = id;
}

async function end() {
  idle();
  try { await showAnswer(); } catch (error) { return note(error.message, true); }
  if (state.run) document.dispatchEvent(new CustomEvent("answered"));
}

function failed(event) {
  note([event.message, event.cause, event.fix].filter(Boolean).join(". "), true);
  say("No answer");
  hidePlan();
  idle();
  tools();
}

async function broken(id) {
  idle();
  const run = await call(`/v1/runs/${id}`);
  if (run.error) return failed(run.error);
  say("");
  note(`This run stopped half-way. Resume it from the list of runs, or with nexi resume ${id}.`, true);
  tools();
}

// what each event changes

const bar = (event, fact, lane, label, isFailed = false) => {
  if (fact <= state.known) return; // drawn already, from the log
  const now = elapsed();
  addBar({ lane, who: event.agent || "", label, start: Math.max(0, now - (event.seconds || 0)), end: now, failed: isFailed });
};

const paid = (usage) => {
  state.spent.tokens = (state.spent.tokens || 0) + (usage?.input_tokens || 0) + (usage?.output_tokens || 0);
  state.spent.cost = (state.spent.cost || 0) + (usage?.cost || 0);
};
const count = (name) => { state.spent[name] = (state.spent[name] || 0) + 1; paintSoon(); };

const TAKES = {
  run_started(event) {
    $("asked").textContent = event.query;
    state.asked = { effort: event.effort, mode: event.mode, ...event.settings?.asked };
    state.before = event.settings?.continues || "";
    document.dispatchEvent(new CustomEvent("started"));
  },
  run_resumed() { state.stale = state.text; state.text = ""; tell("Going on where the run was"); }, // the answer is told again
  text_delta(event) { state.text += event.text; tell("Writing"); renderSoon(); },
  status_delta(event) { tell(event.text); },
  model_asked(event) { tell(event.purpose === "answer" ? "Thinking" : `Thinking: ${event.purpose}`); },
  model_replied(event, fact) { paid(event.usage); count("calls"); bar(event, fact, "model", `call ${event.call}`); },
  model_failed(event, fact) { paid(event.usage); count("calls"); bar(event, fact, "model", event.message, true); },
  search_finished(event, fact) {
    tell(`Found ${plural(event.hits.length, "result")} for “${event.query}”`);
    count("searches");
    bar(event, fact, "search", event.query, !event.hits.length);
  },
  page_fetched(event, fact) { if (!event.ahead) tell(`Read ${hostOf(event.url)}`); count("pages"); bar(event, fact, "page", hostOf(event.url)); },
  page_failed(event, fact) { bar(event, fact, "page", `${hostOf(event.url)}: ${event.message}`, true); },
  agenda_proposed(event) { showPlan(event); tell("The plan waits for you"); },
  agenda_set(event) { hidePlan(); tell(`Planned ${plural(event.tasks.length, "task")}`); },
  researcher_started(event) { person(event.researcher, "at work", event.task); },
  researcher_reported(event) { person(event.researcher, "reported"); },
  researcher_failed(event) { person(event.researcher, "failed", "", event.message); },
  round_evaluated(event) { tell(event.decision === "delegate" ? "Going deeper" : "Writing the report"); },
  warned(event) { if (!event.agent && $("notes").childElementCount < 20) note(event.message); },
  run_finished: end,
  run_failed: failed,
};

// painting

let ticking = 0, painting = 0, told = "", people = false;

export const elapsed = () => (performance.now() - state.started) / 1000;

function tick() {
  clearInterval(ticking);
  paintSoon();
  return setInterval(paintSoon, 1000);
}

function tell(text) { told = text; paintSoon(); }

function paintSoon() { painting ||= setTimeout(() => { painting = 0; paint(); }, PAINT_MS); }

function paint() {
  if (people) showPeople();  // also where a run was over before its first picture
  if (!state.source) return;
  if (told) say(told);
  told = "";
  showSpent({ ...state.spent, seconds: elapsed() });
}

export function showSpent(spent) {
  const limits = { ...state.form?.limits }, asked = state.asked;
  if (asked.time_target) limits.time_target = asked.time_target;
  if (asked.max_cost) limits.max_cost = asked.max_cost;
  const money = (x) => `$${x < 0.1 ? x.toFixed(4) : x.toFixed(2)}`;
  const rows = [
    ["Time", `${Math.floor(spent.seconds || 0)} s`, spent.seconds, limits.time_target, (x) => `${Math.floor(x)} s`],
    ["Tokens", (spent.tokens || 0).toLocaleString("en"), spent.tokens, limits.max_tokens, (x) => x.toLocaleString("en")],
    ["Cost", spent.cost ? money(spent.cost) : "–", spent.cost, limits.max_cost, money],
    ["Model calls", String(spent.calls || 0), spent.calls, limits.max_model_calls, String],
    ["Pages", String(spent.pages || 0), spent.pages, limits.max_pages, String],
  ];
  const list = $("spent");
  rows.forEach(([name, value, used, limit, words], i) => {
    const box = list.children[i] ?? list.appendChild(element("div", {}, element("dt", { textContent: name }), element("dd", {}, element("b"), element("small"))));
    const left = limit ? `${words(Math.max(0, limit - (used || 0)))} left` : "";
    const [big, small] = box.lastChild.children;
    if (big.textContent !== value) big.textContent = value;
    if (small.textContent !== left) small.textContent = left;
  });
}

function person(who, doing, task = "", why = "") {
  const known = state.people.get(who) || { task };
  state.people.set(who, { task: task || known.task, doing, why });
  people = true;
  paintSoon();
}

function showPeople() {
  people = false;
  const list = $("researchers"), shown = [...state.people].slice(-MOST_PEOPLE);
  shown.forEach(([who, one], i) => {
    const item = list.children[i] ?? list.appendChild(element("li", {}, element("b"), element("span"), element("span", { dir: "auto" })));
    const [name, doing, task] = item.children, how = one.why ? `${one.doing}: ${one.why}` : one.doing;
    item.className = one.doing.replace(" ", "-");
    if (name.textContent !== who) name.textContent = who;
    if (doing.textContent !== how) doing.textContent = how;
    if (task.textContent !== one.task) task.textContent = one.task;
  });
  list.hidden = !shown.length;
}

// the answer under way

let rendering = 0;

function renderSoon() { rendering ||= setTimeout(render, 150); }

async function render() {
  const text = state.text, id = state.id;
  try {
    // what a resumed run tells again takes the place of what is shown once there is as much of it
    state.unshown = true;
    if (text.length >= state.stale.length && text.length < MOST_CHARS) await show(text, id);
    state.unshown = false;
  } catch { await pause(500); } // what stands there stays until the server is back
  rendering = 0;
  if ((state.text !== text || state.unshown) && state.source) renderSoon();
}

async function show(text, id) {
  const cut = text.length > WHOLE_CHARS ? settled(text) : 0, target = $("answer");
  if (cut !== Number(target.dataset.cut || 0)) {
    const before = await html(text.slice(Number(target.dataset.cut || 0), cut));
    if (id !== state.id || !state.source) return;
    const part = element("div", { innerHTML: before }); // made safe by the server
    for (const old of [...target.children].filter((one) => !one.classList.contains("settled"))) old.remove();
    part.className = "settled";
    target.append(part);
    target.dataset.cut = cut;
  }
  const rest = await html(text.slice(cut));
  if (id === state.id && state.source) patch(target, rest);
}

const html = async (text) => (await call("/page/render", { method: "POST", body: JSON.stringify({ text }) })).html;

// The end of the last part that nothing can change any more: a blank line outside a fence.
function settled(text) {
  const cut = text.lastIndexOf("\n\n#");
  return cut > 0 && (text.slice(0, cut).match(/^```/gm) || []).length % 2 === 0 ? cut + 2 : 0;
}

// Only what is new is put in, so that what is being read or marked stays as it is.
function patch(target, made) {
  const template = element("template", { innerHTML: made }); // made safe by the server
  const next = [...template.content.childNodes], kept = [...target.childNodes].filter((one) => !one.classList?.contains("settled"));
  let same = 0;
  while (same < next.length && same < kept.length && next[same].isEqualNode(kept[same])) same++;
  for (const old of kept.slice(same)) old.remove();
  target.append(...next.slice(same));
}
