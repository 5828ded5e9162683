// The body of POST /v1/runs: from the fields of the form, or from a run that is asked again with another model.

const bareSite = (word) => word.replace(/^(-?)[a-z]+:\/\//i, "$1").replace(/\/+$/, "");

// The sites named in a field, divided by blanks or commas; a minus excludes one.
export function parseSites(text) {
  const words = text.split(/[\s,]+/).map(bareSite).filter(Boolean);
  return {
    sites: words.filter((word) => !word.startsWith("-")),
    excluded: words.filter((word) => word.startsWith("-")).map((word) => word.slice(1)).filter(Boolean),
  };
}

export function buildOrder(form, continues = "") {
  const { sites, excluded } = parseSites(form.sites), isDeep = form.effort === "deep";
  const options = { time_range: form.time, focus: form.focus };
  if (sites.length) options.sites = sites;
  if (excluded.length) options.excluded_sites = excluded;
  if (form.model) options.model = form.model;
  if (isDeep) Object.assign(options, { depth: Number(form.depth), plan: form.planned }); else options.effort = form.effort;
  const order = { question: form.question.trim(), mode: isDeep ? "research" : "search", options };
  if (continues) order.continues = continues;
  else if (form.space) order.space = form.space;
  return order;
}

// The same question as that of a run, with its filters, for another model.
export function buildRetryOrder(question, asked, { model, mode = "", continues = "" }) {
  const options = model ? { model } : {}, how = asked.mode || mode || "search";
  if (how === "search" && asked.effort) options.effort = asked.effort;
  if (asked.only_local || asked.scope === "local") options.focus = "local";
  for (const name of ["sites", "excluded_sites", "time_range", "focus"]) if (asked.query?.[name]?.length) options[name] = asked.query[name];
  const order = { question, mode: how === "research" ? "research" : "search", options };
  if (asked.space) order.space = asked.space;
  if (continues) order.continues = continues;
  return order;
}
