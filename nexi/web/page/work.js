// The work of a run as its events tell it: the plan, the researchers, their queries, pages and reports. Nothing is drawn here.
// The same events give the same work, whether they come one by one, after a reload, or all at once from the log of an old run.
import { hostOf } from "./core.js";
import { say } from "./texts.js";

const MAX_ITEMS = 300, MAX_HITS = 3000, MAX_PROGRESS = 95, PAGE_SHARE = .07, MAX_SHARE = .8, FINDING_CHARS = 240;
const TARGET_ROUNDS = { 1: 2, 2: 3, 3: 5 };

const PURPOSES = ["extract", "judge", "compact", "correct"];

const createAgent = (id, task = "", round = 0) => ({ id, task, round, state: "", why: "", doing: "", report: "", finding: "", queries: new Map(), pages: new Map(), read: 0, given: 0 });

export const createWork = () => ({
  tasks: [], waiting: [], round: 0, rounds: 0, progress: 0, status: "", isDeep: false, agents: new Map([["", createAgent("")]]), hits: new Map(), sources: new Map(),
});

export const researchersOf = (work) => [...work.agents.values()].filter((agent) => agent.id);
export const countOf = (work, name) => [...work.agents.values()].reduce((sum, agent) => sum + (name === "pages" ? agent.read : agent[name].size), 0);

export const isWorkEvent = (kind) => Object.hasOwn(RULES, kind);

// Takes in one event; returns the id of the agent whose work it changed, or null where it changed none.
export function applyEvent(work, kind, event) {
  if (!isWorkEvent(kind)) return null;
  const agent = agentOf(work, event.agent || event.researcher || "");
  const doing = RULES[kind](work, event, agent) || "";
  if (doing) {
    agent.doing = doing;
    work.status = agent.id ? describeTeam(work) : doing;
  }
  advance(work);
  return agent.id;
}

function agentOf(work, id) {
  if (!work.agents.has(id)) work.agents.set(id, createAgent(id));
  return work.agents.get(id);
}

const describeTeam = (work) => {
  const busy = researchersOf(work).filter((agent) => agent.state === "working");
  return busy.length === 1 ? busy[0].doing : describeCrowd(busy.length, countOf(work, "pages"));
};

function describeCrowd(n, pages) {
  const researchers = say("doing.researching", { n });
  return pages ? say("doing.researching_pages", { researchers, pages: say("count.pages", { n: pages }) }) : researchers;
}

const listNames = (hosts) => (hosts.length > 3 ? say("doing.reading_more", { hosts: hosts.slice(0, 2).join(", "), n: hosts.length - 2 }) : say("doing.reading", { hosts: hosts.join(", ") }));
const comparing = (n) => (n > 1 ? say("doing.comparing", { n }) : say("doing.comparing_one"));

// No service answered, which is not "0 results".
export const hasNoAnswer = ({ backend, hits, failures }) => !backend && !hits.length && failures?.length > 0 && failures.every(({ code }) => code !== "empty");

const RULES = {
  run_started: () => say("doing.starting"),
  run_resumed: () => say("doing.resuming"),
  model_asked: (work, { purpose }, agent) => (purpose === "answer" && agent.given ? say("doing.reflecting", { n: agent.given }) : say(PURPOSES.includes(purpose) ? `doing.${purpose}` : "doing.thinking")),
  status_delta: (work, { text }) => (text === "planning" ? say("doing.planning") : text === "evaluating" ? comparing(researchersOf(work).filter((one) => one.report).length) : text),
  tool_started: (work, event, agent) => startTool(event, agent),
  search_delayed: (work, { backend, seconds }) => (seconds >= 1 ? say("doing.delayed", { backend, n: Math.round(seconds) }) : ""),
  search_finished(work, event, agent) {
    const isUnanswered = hasNoAnswer(event);
    setItem(agent.queries, event.query, { hits: event.hits.length, isUnanswered });
    if (work.hits.size < MAX_HITS) for (const hit of event.hits) work.hits.set(hit.url, { title: hit.title, snippet: hit.snippet, date: (hit.published || "").slice(0, 10) });
    return isUnanswered ? say("doing.unanswered", { query: event.query }) : say("doing.found", { n: event.hits.length, query: event.query });
  },
  knowledge_searched(work, event, agent) { setItem(agent.queries, event.query, { hits: event.passages, local: true }); return say("doing.knowledge"); },
  page_fetched(work, event, agent) {
    agent.read++;
    const hit = work.hits.get(event.url) || {};
    setItem(agent.pages, event.url, { title: event.title || hit.title, date: (event.imprint?.published || hit.date || "").slice(0, 10), snippet: hit.snippet, ahead: event.ahead, state: "read" });
    return event.ahead ? "" : say("doing.read", { host: hostOf(event.url) });
  },
  page_failed(work, event, agent) {
    setItem(agent.pages, event.url, { title: work.hits.get(event.url)?.title, why: event.message, ahead: event.ahead, state: "failed" });
    return event.ahead ? "" : say("doing.unread", { host: hostOf(event.url) });
  },
  source_numbered(work, { source }, agent) {
    agent.given++;
    setItem(agent.pages, source.url, { n: source.number, ahead: false });
    if (work.sources.size < MAX_ITEMS) work.sources.set(source.number, { ...source, date: (source.imprint?.published || "").slice(0, 10), snippet: work.hits.get(source.url)?.snippet });
  },
  sources_renumbered(work, { sources }) {
    const known = new Map([...work.sources.values()].map((one) => [one.url, one])), moved = new Map(sources.map((one) => [known.get(one.url)?.number, one.number]));
    const renumber = (text) => text.replace(/\[(\d+)\]/g, (mark, n) => (moved.has(Number(n)) ? `[${moved.get(Number(n))}]` : mark));
    for (const one of sources) work.sources.set(one.number, { ...known.get(one.url), ...one });
    for (const agent of work.agents.values()) {
      for (const one of sources) if (agent.pages.has(one.url)) setItem(agent.pages, one.url, { n: one.number });
      Object.assign(agent, { report: renumber(agent.report), finding: renumber(agent.finding) });
    }
  },
  agenda_proposed: (work, event) => { Object.assign(work, { tasks: event.tasks, isDeep: true }); return say("doing.waiting"); },
  agenda_set: (work, event) => { Object.assign(work, { tasks: event.tasks, waiting: [...event.tasks], rounds: TARGET_ROUNDS[event.complexity] || 1, isDeep: true }); return say("doing.planned", { n: event.tasks.length }); },
  researcher_started(work, event, agent) {
    Object.assign(agent, { task: event.task, round: event.round, state: "working" });
    Object.assign(work, { round: event.round, isDeep: true, waiting: work.waiting.filter((task) => task !== event.task) });
    return say("doing.queued");
  },
  researcher_reported(work, event, agent) { Object.assign(agent, { state: "reported", report: event.report, finding: firstFinding(event.report) }); return " "; },
  researcher_failed(work, event, agent) { Object.assign(agent, { state: "failed", why: event.message }); return " "; },
  round_evaluated(work, event) {
    if (event.decision !== "delegate") return say("doing.report");
    work.waiting = [...event.tasks];
    return say("doing.deeper", { n: event.tasks.length });
  },
  text_delta: (work) => say(work.isDeep ? "doing.report" : "doing.writing"),
  run_finished: (work) => { work.progress = 100; },
};

// The newest items are kept; an item keeps what is known of it.
function setItem(items, key, about) {
  if (!items.has(key) && items.size >= MAX_ITEMS) items.delete(items.keys().next().value);
  items.set(key, { ...items.get(key), ...Object.fromEntries(Object.entries(about).filter(([, value]) => value !== undefined)) });
}

function startTool(event, agent) {
  const given = parseArguments(event.arguments), list = (name) => (Array.isArray(given?.[name]) ? given[name].filter((one) => typeof one === "string") : []);
  if (event.name === "web_get") {
    for (const url of list("urls")) if (agent.pages.get(url)?.state !== "read") setItem(agent.pages, url, { state: "reading", ahead: false });
    const hosts = [...new Set(list("urls").map(hostOf))];
    return hosts.length ? listNames(hosts) : "";
  }
  if (event.name !== "web_search" && event.name !== "local_search") return "";
  for (const query of list("queries")) if (!agent.queries.has(query)) setItem(agent.queries, query, {});
  return event.name === "local_search" || !list("queries").length ? say("doing.knowledge") : say("doing.searching", { queries: list("queries").map((query) => say("doing.quoted", { query })).join(", ") });
}

function parseArguments(text) { try { return JSON.parse(text); } catch { return null; } }

// The first sentence of a report that cites a source, without its Markdown.
export function firstFinding(report) {
  const lines = report.split("\n").filter((line) => !/^\s*(#|\||```|---)/.test(line)), cited = lines.find((line) => /\[\d+\]/.test(line)) || lines.find((line) => line.trim()) || "";
  const plain = cited.replace(/^\s*(?:[-*>]|\d+\.)\s+/, "").replace(/\*\*|__|`/g, "").trim();
  const sentence = plain.match(/^.*?\[\d+\](?:\[\d+\])*[.!?]?/)?.[0] || plain;
  return sentence.length > FINDING_CHARS ? `${sentence.slice(0, FINDING_CHARS)}…` : sentence;
}

// Progress never falls: what a delegation adds makes later steps smaller.
function advance(work) {
  const people = researchersOf(work);
  if (!people.length || work.progress === 100) return;
  const done = people.reduce((sum, one) => sum + (one.state === "working" ? Math.min(MAX_SHARE, one.pages.size * PAGE_SHARE) : 1), 0);
  const expected = people.length + work.waiting.length + Math.max(0, work.rounds - work.round) * 2;
  work.progress = Math.min(MAX_PROGRESS, Math.max(work.progress, Math.round(100 * done / (expected + 1))));
}
