// What the server says, in the language of the page: its sentences by their codes, some with values in braces. They are fetched when a text first needs them.

let table = null;

export const loadSentences = () => (table ??= fetch("/static/sentences").then((answer) => answer.json()));

const MAX_DEPTH = 12;

// A text by its code, with its values, which may be such texts too; one without a code, or with one that is not known, stays as it is.
export function translate(sentences, notices, text, depth = 0) {
  const notice = notices.get(text);
  if (!notice || depth > MAX_DEPTH || !Object.hasOwn(sentences, notice.code)) return text;
  return sentences[notice.code].replace(/\{(\w+)\}/g, (_, name) => translate(sentences, notices, notice.values[name] ?? "", depth + 1));
}
