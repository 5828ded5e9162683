// Server-sent events as text: whole frames out of the pieces that arrive, and what one frame says.

// The whole frames in what was left over and what has come, and what is left over now.
export function splitFrames(rest, piece) {
  const frames = (rest + piece).split("\n\n");
  return { rest: frames.pop(), frames };
}

// Kind, id and data of a frame; null for a comment, a retry time or anything else without them. The data is parsed when it is used.
export function parseFrame(frame) {
  const at = frame.indexOf("\nevent: "), to = frame.indexOf("\ndata: ");
  if (!frame.startsWith("id: ") || at < 0 || to < at) return null;
  return { id: frame.slice(4, at), kind: frame.slice(at + 8, to), data: frame.slice(to + 7) };
}
