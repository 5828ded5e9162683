// Answers that need no search: sums, units, days between dates and the time elsewhere. Each says what it is; Enter still asks.
// What is not wholly understood gives nothing.

const UNITS = {
  length: { m: 1, km: 1000, cm: .01, mm: .001, mi: 1609.344, mile: 1609.344, miles: 1609.344, yd: .9144, ft: .3048, feet: .3048, foot: .3048, inch: .0254, inches: .0254, nmi: 1852 },
  mass: { kg: 1, g: .001, mg: 1e-6, t: 1000, lb: .45359237, lbs: .45359237, pound: .45359237, pounds: .45359237, oz: .028349523125 },
  volume: { l: 1, liter: 1, liters: 1, litre: 1, litres: 1, ml: .001, gal: 3.785411784, gallon: 3.785411784, gallons: 3.785411784, pint: .473176473, pints: .473176473 },
  time: { s: 1, min: 60, h: 3600, hours: 3600, hour: 3600, minutes: 60, minute: 60, seconds: 1, second: 1, day: 86400, days: 86400, week: 604800, weeks: 604800 },
  speed: { "km/h": 1 / 3.6, "m/s": 1, mph: .44704, kn: 1852 / 3600, knots: 1852 / 3600 },
  data: { b: 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12, kib: 1024, mib: 1024 ** 2, gib: 1024 ** 3 },
};
const TO_CELSIUS = { c: (x) => x, "°c": (x) => x, celsius: (x) => x, f: (x) => (x - 32) / 1.8, "°f": (x) => (x - 32) / 1.8, fahrenheit: (x) => (x - 32) / 1.8, k: (x) => x - 273.15, kelvin: (x) => x - 273.15 };
const FROM_CELSIUS = { c: (x) => x, "°c": (x) => x, celsius: (x) => x, f: (x) => x * 1.8 + 32, "°f": (x) => x * 1.8 + 32, fahrenheit: (x) => x * 1.8 + 32, k: (x) => x + 273.15, kelvin: (x) => x + 273.15 };
const DAY_MS = 86_400_000, MAX_CHARS = 80, MAX_POWER = 1000;
const CONVERSION = /^(-?[\d.,]+)\s*([a-z°/]+)\s+(?:in|to|into|as|=|nach|en|a|à|vers)\s+([a-z°/]+)\s*\??$/i;
const DATE = "(\\d{4}-\\d{2}-\\d{2})", SPAN = new RegExp(`^days (?:between|from) ${DATE} (?:and|to) ${DATE}\\??$`, "i"), UNTIL = new RegExp(`^(?:how many )?days (until|till|since) ${DATE}\\??$`, "i");
const CLOCK = /^(?:what time is it|what's the time|time|current time|uhrzeit|wie spät ist es|hora|qué hora es|heure|quelle heure est-il) (?:in|en|à) ([\p{L} ]+?)\??$/iu;

// { kind, value }, or null: `kind` is one of sum, unit, days, clock. `now` is the time of the one who asks.
export function answerInstantly(text, now = new Date(), language = "en") {
  const asked = text.trim();
  if (!asked || asked.length > MAX_CHARS) return null;
  return addUp(asked, language) || convert(asked, language) || countDays(asked, now, language) || tellTime(asked, now, language);
}

const show = (x, language) => (Math.abs(x) >= 1e15 || (x && Math.abs(x) < 1e-6) ? String(Number(x.toPrecision(10))) : Number(x.toPrecision(12)).toLocaleString(language, { maximumFractionDigits: 8 }));

// A comma may divide thousands or decimals, by language and by place, so a number with one is left to the search.
const parseNumber = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : NaN);

function addUp(asked, language) {
  const sum = asked.replace(/=\s*\??$/, "").replaceAll("×", "*").replaceAll("÷", "/").replaceAll("−", "-").replaceAll("**", "^");
  if (!/^[\d\s.+\-*/^%()]+$/.test(sum) || !/\d\s*[+\-*/^%]\s*[\d(.-]/.test(sum) || /^\d{4}-\d{1,2}-\d{1,2}$/.test(sum.trim()) || /\d\s+\d/.test(sum)) return null;
  const value = parseSum(sum.replace(/\s/g, ""));
  return Number.isFinite(value) ? { kind: "sum", value: `${asked.replace(/\s*=?\s*\??$/, "")} = ${show(value, language)}` } : null;
}

// Terms of factors of powers, by recursive descent; NaN where it is no sum.
function parseSum(text) {
  let at = 0;
  const takes = (signs) => (at < text.length && signs.includes(text[at]) ? text[at++] : "");
  const number = () => {
    if (takes("(")) { const inner = sum(); return takes(")") ? inner : NaN; }
    const digits = text.slice(at).match(/^(\d+\.?\d*|\.\d+)/)?.[0] || "";
    at += digits.length;
    return digits ? Number(digits) : NaN;
  };
  const power = () => { const base = number(); if (!takes("^")) return base; const by = signed(); return Math.abs(by) > MAX_POWER ? NaN : base ** by; };
  const signed = () => (takes("-") ? -signed() : takes("+") ? signed() : power());
  const factor = () => { let value = signed(); for (let sign; (sign = takes("*/%"));) { const by = signed(); value = sign === "*" ? value * by : sign === "/" ? value / by : value % by; } return value; };
  const sum = () => { let value = factor(); for (let sign; (sign = takes("+-"));) value += sign === "+" ? factor() : -factor(); return value; };
  const value = sum();
  return at === text.length ? value : NaN;
}

function convert(asked, language) {
  const [, amount, from, to] = asked.match(CONVERSION) || [], x = parseNumber(amount || ""), [a, b] = [from?.toLowerCase(), to?.toLowerCase()];
  if (Number.isNaN(x)) return null;
  const heat = Object.hasOwn(TO_CELSIUS, a) && Object.hasOwn(FROM_CELSIUS, b), table = Object.values(UNITS).find((units) => Object.hasOwn(units, a) && Object.hasOwn(units, b));
  if (!heat && !table) return null;
  return { kind: "unit", value: `${show(x, language)} ${from} = ${show(heat ? FROM_CELSIUS[b](TO_CELSIUS[a](x)) : x * table[a] / table[b], language)} ${to}` };
}

function countDays(asked, now, language) {
  const span = asked.match(SPAN), until = asked.match(UNTIL), today = Date.UTC(now.getFullYear(), now.getMonth(), now.getDate());
  const [from, to] = span ? [parseDay(span[1]), parseDay(span[2])] : until ? (/since/i.test(until[1]) ? [parseDay(until[2]), today] : [today, parseDay(until[2])]) : [NaN, NaN];
  return Number.isNaN(to - from) ? null : { kind: "days", value: show((to - from) / DAY_MS, language) };
}

function parseDay(text) {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text) ? day.getTime() : NaN;
}

// A place is the last part of the name of a zone, such as Asia/Tokyo.
function tellTime(asked, now, language) {
  const place = asked.match(CLOCK)?.[1].trim().toLowerCase().replaceAll(" ", "_");
  const zone = place && ["UTC", ...Intl.supportedValuesOf("timeZone")].find((name) => name.toLowerCase().split("/").at(-1) === place);
  return zone ? { kind: "clock", value: `${now.toLocaleString(language, { timeZone: zone, weekday: "long", hour: "2-digit", minute: "2-digit" })} (${zone})` } : null;
}
