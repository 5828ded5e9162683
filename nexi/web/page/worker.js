// The service worker: the page opens without a network, and so do the last answers where the browser is its owner's alone. Everything else is asked of the server first, always.
const SHELL = "nexi-shell", ANSWERS = "nexi-answers", MAX_ANSWERS = 60, keepsAnswers = new URL(self.location.href).searchParams.has("answers");
const KEPT = /^\/(page\/(form|recent|history|runs\/[\w-]+(\/(thread|timeline))?)|v1\/runs\/[\w-]+)$/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(Promise.all([self.clients.claim(), keepsAnswers ? null : caches.delete(ANSWERS)])));
self.addEventListener("message", (event) => event.waitUntil(keepShell(["/", ...event.data]).catch(() => {})));

self.addEventListener("fetch", (event) => {
  const { request } = event, url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && /^\/($|runs\/|spaces\/|history$|knowledge$|check$|table$|setup$)/.test(url.pathname)) event.respondWith(fetch(request).catch(() => caches.match("/").then((page) => page || Response.error())));
  else if (url.pathname.startsWith("/static/")) event.respondWith(fetchFirst(request, SHELL));
  else if (keepsAnswers && KEPT.test(url.pathname) && !request.headers.has("authorization")) event.respondWith(fetchFirst(request, ANSWERS));
});

// What the server says, kept for when it cannot be reached. Who may not read here any more loses what was kept.
async function fetchFirst(request, name) {
  try {
    const answer = await fetch(request);
    if ([401, 403].includes(answer.status)) await caches.delete(ANSWERS);
    else if (answer.ok) await keep(request, answer.clone(), name);
    return answer;
  } catch { return (await caches.match(request)) || Response.error(); }
}

async function keep(request, answer, name) {
  const cache = await caches.open(name), whole = await readWhole(answer);
  await cache.delete(request); // the newest last
  await cache.put(request, whole);
  if (name === ANSWERS) for (const old of (await cache.keys()).slice(0, -MAX_ANSWERS)) await cache.delete(old);
}

// All files of the page or none: a network that breaks in between takes nothing away.
async function keepShell(paths) {
  const whole = await Promise.all(paths.map(async (path) => readWhole(await fetch(path)))), cache = await caches.open(SHELL);
  await Promise.all(paths.map((path, at) => cache.put(path, whole[at])));
}

// An answer read to its end: one that breaks while the cache writes it takes the kept one away.
async function readWhole(answer) {
  if (!answer.ok) throw new Error(answer.statusText);
  const headers = new Headers(answer.headers), body = await answer.blob();
  headers.delete("content-encoding");
  return new Response(body, { headers });
}
