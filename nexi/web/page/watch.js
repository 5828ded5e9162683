// Watching: the events of a run as they come; after a broken connection they resume without a gap and without a repeat.
// Events are handled in short slices and painted a few times a second, so that a run of ten thousand never holds up the page.
import { $, addNote, call, element, hostOf, joinProblem, plural, setStatus, withToken } from "./core.js";
import { renderSoon } from "./draft.js";
import { parseFrame, splitFrames } from "./frames.js";
import { hidePlan, showPlan } from "./plan.js";
import { showAnswer, showTools } from "./read.js";
import { showSpent } from "./spent.js";
import {
  addMarks, addUsage, appendText, countSpent, restartText, setConnection, setLastEvent, setPreviousRun, setRequest, setResearcher, setRunId, state,
} from "./state.js";
import { drawBar } from "./timeline.js";

const SLICE_MS = 8, PAINT_MS = 200, MAX_PAUSE_MS = 3000, MAX_UNFINISHED = 8, MAX_RESEARCHERS = 60, MAX_NOTES = 20;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function stopFollowing() {
  $("stop").hidden = true;
  $("go").disabled = false;
  setConnection(null);
  clearInterval(ticking);
  document.body.classList.remove("running");
}

// following

let queue = [], handled = 0, draining = false, waiting = [];

export async function follow(id) {
  const ended = new AbortController(), mine = { close: () => ended.abort() };
  setConnection(mine);
  setRunId(id);
  queue = []; handled = 0;
  ticking = tick();
  document.body.classList.add("running");
  for (let tries = 0, unfinished = 0; state.source === mine; tries++) {
    const before = state.last;
    try { await readEvents(id, ended.signal); } catch { /* the connection went away */ }
    await drainQueue();
    if (state.source !== mine) return;
    if (state.last !== before) tries = unfinished = 0;
    setStatus("Connection lost: reconnecting");
    const how = await fetchState(id);
    if (state.source !== mine) return;
    if (how === "finished") return finishRun();
    if (how === "failed" || (how === "unfinished" && ++unfinished > MAX_UNFINISHED)) return showBrokenRun(id);
    await pause(reconnectDelay(tries));
  }
}

export const reconnectDelay = (tries) => Math.min(300 * 1.5 ** tries, MAX_PAUSE_MS);

async function readEvents(id, signal) {
  const answer = await fetch(`/v1/runs/${id}/events`, { headers: withToken({ "last-event-id": state.last || "0" }), signal, cache: "no-store" });
  if (answer.status !== 200) return;
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) return;
    const whole = splitFrames(rest, value);
    rest = whole.rest;
    for (const frame of whole.frames) queue.push(frame);
    drainSoon();
  }
}

async function fetchState(id) {
  try {
    const answer = await fetch(`/v1/runs/${id}`, { headers: withToken(), cache: "no-store" });
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
  while (handled < queue.length && performance.now() < until) handleFrame(queue[handled++]);
  if (handled < queue.length) return void setTimeout(drain);
  queue = []; handled = 0; draining = false;
  for (const go of waiting.splice(0)) go();
}

const drainQueue = () => (draining ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve());

function handleFrame(text) {
  const frame = parseFrame(text);
  if (!frame) return;
  if (Object.hasOwn(EVENT_HANDLERS, frame.kind)) EVENT_HANDLERS[frame.kind](JSON.parse(frame.data), parseInt(frame.id, 10));
  setLastEvent(frame.id);
}

async function finishRun() {
  stopFollowing();
  try { await showAnswer(); } catch (error) { return addNote(error.message, true); }
  if (state.run) document.dispatchEvent(new CustomEvent("answered"));
}

function showFailure(problem) {
  addNote(joinProblem(problem.message, problem.cause, problem.fix), true);
  setStatus("No answer");
  hidePlan();
  stopFollowing();
  showTools();
}

async function showBrokenRun(id) {
  stopFollowing();
  const run = await call(`/v1/runs/${id}`);
  if (run.error) return showFailure(run.error);
  setStatus("");
  addNote(`This run stopped half-way. Resume it from the list of runs, or with nexi resume ${id}.`, true);
  showTools();
}

// what each event changes

const addEventBar = (event, fact, lane, label, isFailed = false) => {
  if (fact <= state.known) return; // drawn already, from the log
  const now = elapsed();
  drawBar({ lane, who: event.agent || "", label, start: Math.max(0, now - (event.seconds || 0)), end: now, failed: isFailed });
};

const count = (name) => { countSpent(name); paintSoon(); };

const EVENT_HANDLERS = {
  run_started(event) {
    $("asked").textContent = event.query;
    setRequest({ effort: event.effort, mode: event.mode, ...event.settings?.asked });
    setPreviousRun(event.settings?.continues || "");
    document.dispatchEvent(new CustomEvent("started"));
  },
  run_resumed() { restartText(); setStatusSoon("Resuming the run"); },
  text_delta(event) { appendText(event.text); setStatusSoon("Writing"); renderSoon(); },
  marks_delta(event) { addMarks(event.marks); renderSoon(); },
  status_delta(event) { setStatusSoon(event.text); },
  model_asked(event) { setStatusSoon(event.purpose === "answer" ? "Thinking" : `Thinking: ${event.purpose}`); },
  model_replied(event, fact) { addUsage(event.usage); count("calls"); addEventBar(event, fact, "model", `call ${event.call}`); },
  model_failed(event, fact) { addUsage(event.usage); count("calls"); addEventBar(event, fact, "model", event.message, true); },
  search_finished(event, fact) {
    setStatusSoon(`Found ${plural(event.hits.length, "result")} for “${event.query}”`);
    count("searches");
    addEventBar(event, fact, "search", event.query, !event.hits.length);
  },
  page_fetched(event, fact) { if (!event.ahead) setStatusSoon(`Read ${hostOf(event.url)}`); count("pages"); addEventBar(event, fact, "page", hostOf(event.url)); },
  page_failed(event, fact) { addEventBar(event, fact, "page", `${hostOf(event.url)}: ${event.message}`, true); },
  agenda_proposed(event) { showPlan(event); setStatusSoon("The plan waits for you"); },
  agenda_set(event) { hidePlan(); setStatusSoon(`Planned ${plural(event.tasks.length, "task")}`); },
  researcher_started(event) { updateResearcher(event.researcher, "at work", event.task); },
  researcher_reported(event) { updateResearcher(event.researcher, "reported"); },
  researcher_failed(event) { updateResearcher(event.researcher, "failed", "", event.message); },
  round_evaluated(event) { setStatusSoon(event.decision === "delegate" ? "Going deeper" : "Writing the report"); },
  warned(event) { if (!event.agent && $("notes").childElementCount < MAX_NOTES) addNote(event.message); },
  run_finished: finishRun,
  run_failed: showFailure,
};

// painting

let ticking = 0, painting = 0, nextStatus = "", hasNewResearchers = false;

const elapsed = () => (performance.now() - state.started) / 1000;

function tick() {
  clearInterval(ticking);
  paintSoon();
  return setInterval(paintSoon, 1000);
}

function setStatusSoon(text) { nextStatus = text; paintSoon(); }

function paintSoon() { painting ||= setTimeout(() => { painting = 0; paint(); }, PAINT_MS); }

function paint() {
  if (hasNewResearchers) showResearchers();  // also where a run was over before its first picture
  if (!state.source) return;
  if (nextStatus) setStatus(nextStatus);
  nextStatus = "";
  showSpent({ ...state.spent, seconds: elapsed() });
}

function updateResearcher(id, doing, task = "", why = "") {
  setResearcher(id, doing, task, why);
  hasNewResearchers = true;
  paintSoon();
}

function showResearchers() {
  hasNewResearchers = false;
  const list = $("researchers"), shown = [...state.people].slice(-MAX_RESEARCHERS);
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
