import assert from "node:assert/strict";
import test from "node:test";
import { parseFrame, splitFrames } from "../../nexi/web/page/frames.js";

const FRAMES = ['id: 1\nevent: run_started\ndata: {"query":"a"}', ': still here', 'id: 1.1\nevent: text_delta\ndata: {"text":"b"}'];
const BODY = FRAMES.map((frame) => `${frame}\n\n`).join("");

test("frames are the same however the body is cut", () => {
  for (let size = 1; size <= BODY.length; size++) {
    const found = [];
    let rest = "";
    for (let at = 0; at < BODY.length; at += size) {
      const whole = splitFrames(rest, BODY.slice(at, at + size));
      found.push(...whole.frames);
      rest = whole.rest;
    }
    assert.deepEqual([found, rest], [FRAMES, ""], `pieces of ${size}`);
  }
});

test("a frame that is not whole is left over", () => {
  assert.deepEqual(splitFrames("id: 1\n", "event: a\ndata: {}\n"), { frames: [], rest: "id: 1\nevent: a\ndata: {}\n" });
});

test("a frame has a kind, an id and data", () => {
  assert.deepEqual(parseFrame(FRAMES[0]), { id: "1", kind: "run_started", data: '{"query":"a"}' });
  assert.deepEqual(parseFrame(FRAMES[2]), { id: "1.1", kind: "text_delta", data: '{"text":"b"}' });
});

test("what has no event, no data or no id is no event", () => {
  for (const text of ["", ": still here", "retry: 1000", "id: 1", "id: 1\nevent: a", "id: 1\ndata: {}", "event: a\ndata: {}", "id: 1\ndata: {}\nevent: a"]) {
    assert.equal(parseFrame(text), null, JSON.stringify(text));
  }
});

test("data may hold the words of a frame", () => {
  const data = '{"text":"\\nevent: x\\ndata: y"}';
  assert.deepEqual(parseFrame(`id: 2\nevent: warned\ndata: ${data}`), { id: "2", kind: "warned", data });
});
