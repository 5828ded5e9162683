// The state of the run that is shown. Every part of the page reads `state`; only the functions of this file change it.
import { applyEvent, createWork } from "./work.js";

const emptyRun = () => ({
  id: "", source: null, last: "", text: "", marks: [], stale: "", started: performance.now(), bars: [], open: new Map(), known: 0, work: createWork(), run: null,
  asked: {}, before: "", spent: {}, isStopWanted: false,
});
const values = { ...emptyRun(), continues: "", space: "", defaults: {}, form: null, turns: new Map() };

export const state = new Proxy(values, {
  set(_, name) { throw new TypeError(`state.${String(name)} is set by a function of state.js`); },
});

export function resetRun() {
  values.source?.close();
  Object.assign(values, emptyRun());
}

export function setRunId(id) { values.id = id; }

// A run is stopped as soon as its id is known.
export function wantStop() { values.isStopWanted = true; }

// The open connection to the events of a run; the one before it is closed.
export function setConnection(connection) {
  values.source?.close();
  values.source = connection;
}

export function setLastEvent(id) { values.last = id; }

export function appendText(text) { values.text += text; }

// Verdicts of rules on sentences of the text; places are counted in characters, not in units of UTF-16.
export function addMarks(marks) { values.marks.push(...marks); }

// A resumed run sends its answer again from the start; what is shown stays until there is as much of the new text.
export function restartText() {
  values.stale = values.text;
  values.text = "";
  values.marks = [];
}

// The timeline as the log has it: its bars, those still open, how many facts they cover, and how many seconds ago the run began.
export function loadTimeline({ bars, open = [], facts, seconds }) {
  Object.assign(values, { bars, open: new Map(open.map((bar) => [bar.key, bar])), known: facts, started: performance.now() - seconds * 1000 });
}

// What has begun and not ended, by a key that its end names too.
export function openBar(key, bar) { values.open.set(key, bar); }

export function closeBar(key) { values.open.delete(key); }

export function setBars(bars) { values.bars = bars; }

export function addBar(bar) { values.bars.push(bar); }

// The runs before the one that is shown, in its conversation, by their ids.
export function setTurns(runs) { values.turns = new Map(runs.map((run) => [run.id, run])); }

// The run that a node of the page belongs to: an earlier turn, or the one that is shown.
export const runOf = (node) => values.turns.get(node.closest?.("#thread > li")?.dataset.id) || values.run;

export function setFinishedRun(run) { values.run = run; }

export function setRequest(asked) { values.asked = asked; }

export function setPreviousRun(id) { values.before = id; }

// The space that a new conversation is asked in; one that goes on stays in its own.
export function setSpace(address, { effort = "", model = "" } = {}) { Object.assign(values, { space: address, defaults: { effort, model } }); }

export function setContinuedRun(id) { values.continues = id; }

export function setForm(form) { values.form = form; }

export function addUsage(usage) {
  const spent = values.spent;
  spent.tokens = (spent.tokens || 0) + (usage?.input_tokens || 0) + (usage?.output_tokens || 0);
  spent.cost = (spent.cost || 0) + (usage?.cost || 0);
}

export function countSpent(name) { values.spent[name] = (values.spent[name] || 0) + 1; }

export function resetWork() { values.work = createWork(); }

// Returns the id of the agent whose work changed, or null.
export function applyWorkEvent(kind, event) { return applyEvent(values.work, kind, event); }
