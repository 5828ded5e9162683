// The texts of the page in one language, which the server puts into the page; a text names its values in braces, and counts have a form for each plural.
let texts = null, plurals = null;

export const language = () => document.documentElement.lang || "en";

export function say(name, values = {}) {
  const text = readTexts()[name] ?? name, chosen = typeof text === "string" ? text : text[pluralOf(values.n)] ?? text.other;
  return chosen.replace(/\{(\w+)\}/g, (_, key) => (typeof values[key] === "number" ? formatNumber(values[key]) : values[key] ?? ""));
}

const readTexts = () => (texts ??= JSON.parse(document.getElementById("texts").textContent));
export function addTexts(more) { Object.assign(readTexts(), more); }

const pluralOf = (n) => (plurals ??= new Intl.PluralRules(language())).select(n);

// A browser's first number in a language takes it some 50 ms, so a small one, such as the first seconds of a run, is written as it is, and the first large one is tried when nothing else is to do.
const isPlain = (x, digits) => !digits && Number.isInteger(x) && x >= 0 && x < 1000 && language() !== "ar";
export const formatNumber = (x, digits = 0) => isPlain(x, digits) ? String(x) : x.toLocaleString(language(), digits ? { minimumFractionDigits: digits, maximumFractionDigits: digits } : undefined);
export function prepareNumbers() { for (const prepare of [() => formatNumber(1000), () => pluralOf(1)]) (window.requestIdleCallback ?? setTimeout)(prepare); }
export const formatDate = (text) => new Date(text).toLocaleString(language(), { dateStyle: "medium", timeStyle: "short" });

// The server reads the language of the next page from here; "" leaves it to the browser's own.
export function chooseLanguage(code) { document.cookie = `nexi-language=${code}; path=/; SameSite=Lax; max-age=${code ? 31536000 : 0}`; }
export const chosenLanguage = () => document.cookie.match(/(?:^|; )nexi-language=(\w+)/)?.[1] || "";

// What the server says in English, each text with its code and its values: every reply and event that has such texts has their table.
const notices = new Map();

export function remember(data) { for (const [text, notice] of Object.entries(data?.notices ?? {})) notices.set(text, notice); return data; }

export function joinSentences(first, second) {
  const text = `${first}. ${second}`;
  notices.set(text, { code: "joined.sentences", values: { first, second } });
  return text;
}

// A text of the server, put into an element: in English at once, and in the language of the page when its sentences are there.
export function tell(node, text = "", finish = (words) => words) {
  node.textContent = finish(text);
  if (notices.has(text) && language() !== "en") import("./sentences.js").then(async ({ loadSentences, translate }) => { const shown = finish(text), words = finish(translate(await loadSentences(), notices, text)); if (node.textContent === shown) node.textContent = words; }).catch(() => {});
  return node;
}
