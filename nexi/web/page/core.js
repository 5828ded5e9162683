// What every part of the page shares: the state of the run that is shown, calls to the server, and small makers of elements.
export const $ = (id) => document.getElementById(id);
export const state = {
  id: "", source: null, last: "", text: "", stale: "", started: 0, bars: [], known: 0, people: new Map(), run: null,
  asked: {}, continues: "", before: "", form: null, spent: {},
};

export const token = () => sessionStorage.getItem("nexi-token") || "";

export const signed = (headers = {}) => (token() ? { ...headers, authorization: `Bearer ${token()}` } : headers);

export async function call(path, options = {}) {
  const headers = signed({ ...(typeof options.body === "string" ? { "content-type": "application/json" } : {}), ...options.headers });
  const answer = await fetched(path, { ...options, headers });
  if (answer.status === 401) return askForToken(path, options);
  const data = answer.headers.get("content-type")?.includes("json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(problemOf(data) || `the server answered ${answer.status}`);
  return data;
}

// A network that changes breaks off what is under way; what only looks may be asked again.
async function fetched(path, options) {
  for (let tries = 0; ; tries++) {
    try { return await fetch(path, options); } catch (error) {
      if (tries === 2 || (options.method && options.method !== "GET")) throw error instanceof TypeError ? new Error("the server cannot be reached. Is it running?") : error;
      await new Promise((resolve) => setTimeout(resolve, 400));
    }
  }
}

let asking = null; // several calls may find out at once that a token is wanted

export async function askForToken(path, options) {
  const dialog = $("token"), field = $("token-text");
  asking ??= new Promise((resolve) => {
    field.value = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes" ? field.value.trim() : ""), { once: true });
    dialog.showModal();
  }).finally(() => { asking = null; });
  const given = await asking;
  if (!given) throw new Error("no token was given");
  sessionStorage.setItem("nexi-token", given);
  return call(path, options);
}

export function problemOf(data) {
  if (!data || typeof data !== "object") return "";
  const e = data.error && typeof data.error === "object" ? data.error : data;
  return [e.message || e.error, e.cause, e.fix].filter((x) => typeof x === "string" && x).join(". ");
}

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export async function copyText(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = element("textarea", { value: text, className: "unseen" }); // without TLS there is no clipboard to write to
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

export const hostOf = (url) => { try { return new URL(url).hostname; } catch { return url; } };
export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
export function say(text) { $("status").textContent = text; }
export function note(text, isError = false) { $("notes").append(element("p", { textContent: text, className: isError ? "error" : "" })); }
export function hint(text) { $("hint").textContent = text; $("hint").hidden = !text; }
