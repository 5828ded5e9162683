// What the server says in English, in the language of the page: a table of sentences, some with values in braces. It is fetched when a text first needs it.

let table = null;

export const loadSentences = () => (table ??= fetch("/static/sentences").then((answer) => answer.json()).then(readTable));

// Pure: a table to search, the sentences with values after those without, and of these the longest first.
export function readTable(sentences) {
  const patterns = Object.entries(sentences).filter(([english]) => english.includes("{")).sort(([a], [b]) => b.length - a.length);
  return { exact: new Map(Object.entries(sentences).map(([english, words]) => [plain(english), words])), patterns: patterns.map(([english, words]) => [patternOf(english), words]) };
}

// One sentence, or several parts that a colon or a full stop joins; what is not in the table stays as it is.
export function translate({ exact, patterns }, text) {
  const whole = plain(text), known = exact.get(whole);
  if (known !== undefined) return known;
  for (const [pattern, words] of patterns) {
    const values = whole.match(pattern)?.groups;
    if (values) return words.replace(/\{(\w+)\}/g, (_, name) => translate({ exact, patterns }, values[name]));
  }
  for (const joint of [". ", ": "]) {
    const parts = text.split(joint);
    for (let n = parts.length - 1; n > 0; n--) {
      const first = parts.slice(0, n).join(joint), head = translate({ exact, patterns }, first);
      if (head !== first) return `${head.endsWith("。") ? head : head.replace(/\.$/, "") + joint}${translate({ exact, patterns }, parts.slice(n).join(joint))}`;
    }
  }
  return text;
}

const plain = (text) => { const bare = text.trim().replace(/\.$/, ""); return bare && bare[0].toLowerCase() + bare.slice(1); };
const patternOf = (english) => new RegExp(`^${plain(english).split(/(\{\w+\})/).map((part) => (/^\{\w+\}$/.test(part) ? `(?<${part.slice(1, -1)}>.+?)` : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))).join("")}$`, "s");
