// Watching: the events of a run as they come; after a broken connection they resume without a gap and without a repeat.
// Events are handled in short slices and painted a few times a second, so that a run of ten thousand never holds up the page.
import { drawActivity, foldActivity, hideEmptyActivity } from "./activity.js";
import { $, addNote, call, hostOf, setStatus, withToken } from "./core.js";
import { renderSoon } from "./draft.js";
import { parseFrame, splitFrames } from "./frames.js";
import { hidePlan, showPlan } from "./plan.js";
import { showProblem } from "./problem.js";
import { showAnswer, showTools } from "./read.js";
import { drawLiveSources } from "./sources.js";
import { showSpent } from "./spent.js";
import {
  addMarks, addUsage, appendText, applyWorkEvent, closeBar, countSpent, openBar, restartText, setConnection, setLastEvent, setPreviousRun, setRequest, setRunId, state,
} from "./state.js";
import { remember, say } from "./texts.js";
import { drawBar, drawSoon, elapsed } from "./timeline.js";
import { showChecking } from "./verdict.js";
import { hasNoAnswer, isWorkEvent } from "./work.js";

const SLICE_MS = 8, PAINT_MS = 200, MAX_PAUSE_MS = 3000, MAX_UNFINISHED = 8, MAX_NOTES = 20;
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
    setStatus(say("watch.lost"));
    const how = await fetchState(id);
    if (state.source !== mine) return;
    if (how === "finished") return finishRun();
    if (how === "failed" || how === "stopped" || (how === "unfinished" && ++unfinished > MAX_UNFINISHED)) return showBrokenRun(id);
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
  const handler = Object.hasOwn(EVENT_HANDLERS, frame.kind) && EVENT_HANDLERS[frame.kind];
  if (handler || isWorkEvent(frame.kind)) {
    const event = remember(JSON.parse(frame.data));
    if (applyWorkEvent(frame.kind, event) !== null) { hasNewWork = true; paintSoon(); }
    if (handler) handler(event, parseInt(frame.id, 10));
  }
  setLastEvent(frame.id);
}

async function finishRun() {
  stopFollowing();
  try { await showAnswer(); } catch (error) { return addNote(error.message, true); }
  if (state.run) document.dispatchEvent(new CustomEvent("answered"));
}

// What the person stopped, or a plan that they did not want, is no failure.
export function showFailure(problem) {
  const isRefused = problem.code === "not_approved", isStopped = problem.stop === "cancelled" || problem.code === "cancelled";
  if (!isRefused && !isStopped) showProblem({ ...problem, isLocal: state.asked?.scope === "local" });
  setStatus(say(isRefused ? "watch.cancelled" : isStopped ? "watch.stopped" : "watch.no_answer"));
  hidePlan();
  stopFollowing();
  hideEmptyActivity();
  $("verdict").hidden = true;
  showTools();
  document.dispatchEvent(new CustomEvent("failed", { detail: isRefused || isStopped ? "" : "failed" }));
}

async function showBrokenRun(id) {
  stopFollowing();
  const run = await call(`/v1/runs/${id}`);
  if (run.error || run.state === "stopped") return showFailure({ code: run.code, ...run.error, stop: run.stop });
  setStatus("");
  addNote(say("watch.broken", { id }), true);
  showTools();
}

// what each event changes

const addEventBar = (event, fact, lane, label, isFailed = false) => {
  if (fact <= state.known) return; // drawn already, from the log
  const now = elapsed();
  drawBar({ lane, who: event.agent || "", label, start: Math.max(0, now - (event.seconds || 0)), end: now, failed: isFailed });
};

const TOOL_LANES = { web_search: "search", local_search: "search", web_get: "page" };
const toolKey = (event) => `tool|${event.agent || ""}|${event.call_id}`;

// A bar that grows until its end is told.
const startBar = (fact, key, bar) => {
  if (fact > state.known) openBar(key, { ...bar, start: elapsed() });
  drawSoon();
};

const count = (name) => { countSpent(name); paintSoon(); };

const tellPlan = (isWaiting) => document.dispatchEvent(new CustomEvent("planned", { detail: isWaiting }));

const EVENT_HANDLERS = {
  run_started(event) {
    $("asked").textContent = event.query;
    setRequest({ effort: event.effort, mode: event.mode, ...event.settings?.asked, ...event.request });
    setPreviousRun(event.settings?.continues || "");
    document.dispatchEvent(new CustomEvent("started"));
  },
  run_resumed() { restartText(); },
  text_delta(event) { appendText(event.text); foldActivity(); showChecking(); renderSoon(); },
  marks_delta(event) { addMarks(event.marks); renderSoon(); },
  model_asked(event, fact) { startBar(fact, `model|${event.agent || ""}|${event.call}`, { lane: "model", who: event.agent || "", label: say("timeline.call", { n: event.call }) }); },
  model_replied(event, fact) { closeBar(`model|${event.agent || ""}|${event.call}`); addUsage(event.usage); count("calls"); addEventBar(event, fact, "model", say("timeline.call", { n: event.call })); },
  model_failed(event, fact) { closeBar(`model|${event.agent || ""}|${event.call}`); addUsage(event.usage); count("calls"); addEventBar(event, fact, "model", event.message, true); },
  tool_started(event, fact) { if (TOOL_LANES[event.name]) startBar(fact, toolKey(event), { lane: TOOL_LANES[event.name], who: event.agent || "", label: event.name }); },
  tool_finished(event) { closeBar(toolKey(event)); },
  search_finished(event, fact) { count("searches"); addEventBar(event, fact, "search", event.query, hasNoAnswer(event)); },
  page_fetched(event, fact) { count("pages"); addEventBar(event, fact, "page", hostOf(event.url)); },
  page_failed(event, fact) { addEventBar(event, fact, "page", `${hostOf(event.url)}: ${event.message}`, true); },
  agenda_proposed(event) { showPlan(event); tellPlan(true); },
  agenda_set() { hidePlan(); tellPlan(false); },
  warned(event) { if (!event.agent && !["unsupported", "cancelled"].includes(event.code) && // sentences have a mark, and one line counts them; another says that it was stopped
     $("notes").childElementCount < MAX_NOTES) addNote(event.message); },
  run_finished: finishRun,
  run_failed: showFailure,
};

// painting

let ticking = 0, painting = 0, hasNewWork = false;

function tick() {
  clearInterval(ticking);
  paintSoon();
  return setInterval(() => { paintSoon(); drawSoon(); }, 1000);
}

// What changes the page goes into one frame, however many events it is from.
function paintSoon() { painting ||= setTimeout(() => requestAnimationFrame(() => { painting = 0; paint(); }), PAINT_MS); }

function paint() {
  if (hasNewWork) {  // also where a run was over before its first picture
    hasNewWork = false;
    drawActivity();
    drawLiveSources();
    if (state.source && state.work.status.trim()) setStatus(state.work.status);
  }
  if (state.source) showSpent({ ...state.spent, seconds: elapsed() });
}
