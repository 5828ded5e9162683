// Watching: the events of a run as they come, taken up again where a connection broke.
import { $, call, element, hostOf, note, say, state, token } from "./core.js";
import { showAnswer, tools } from "./read.js";
import { drawSoon } from "./timeline.js";

export function idle() { $("stop").hidden = true; $("go").disabled = false; state.source?.close(); state.source = null; }

export function follow(id) {
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

export async function followByFetch(id, from) {
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

export const KINDS = ["run_started", "run_resumed", "model_asked", "model_replied", "model_failed", "tool_started", "tool_finished", "search_finished", "page_fetched", "page_failed",
  "source_numbered", "agenda_set", "researcher_started", "researcher_reported", "researcher_failed", "round_evaluated", "limit_reached", "warned",
  "answer_checked", "run_finished", "run_failed", "text_delta", "status_delta"];

export function take(kind, data, id) {
  state.last = id || state.last;
  const event = JSON.parse(data), now = (performance.now() - state.started) / 1000;
  const bar = (lane, label, failed) => { state.bars.push({ lane, who: event.agent || "", label, start: Math.max(0, now - (event.seconds || 0)), end: now, failed }); drawSoon(); };
  switch (kind) {
    case "run_started": $("asked").textContent = event.query; break;
    case "run_resumed": state.text = ""; break; // the answer is told again from its beginning
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
    case "run_finished": idle(); showAnswer(); break;
    case "run_failed": note([event.message, event.cause, event.fix].filter(Boolean).join(". "), true); $("status").textContent = "No answer"; idle(); tools(); break;
  }
}

export function person(name, task, doing) {
  const known = state.people.get(name) || { task };
  state.people.set(name, { task: task || known.task, doing });
  $("researchers").hidden = false;
  $("researchers").replaceChildren(...[...state.people].map(([who, p]) => element("li", { textContent: `${who} ${p.doing}: ${p.task}`, dir: "auto" })));
}

export function renderSoon() {
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
