// A player without media: it downloads segments over a trace, plays them, and asks a rule what to request.
//
// A line of the table is an event:
//   c,now,buffer,segment,place                                 the rule chooses a representation
//   p,now,buffer,segment,place,received,first,firstBytes,pieces,lower   it judges an arriving segment (lower: -1 or
//                                                              the representation in which it is requested instead)
//   d,now,buffer,segment,place,bytes,requested,first           the segment has arrived; buffer is without it
// Times are in milliseconds, representations are places in the ladder.

import { bytesBy, doneMs } from './traces.mjs';

/** How often an arriving segment is judged, and how often the table has it although it is not abandoned. */
const TICK_MS = 200;
const WRITTEN_EVERY_MS = 1000;

/** Plays `segments` over a trace with a rule of the shape { choose, progress, arrived }. */
export function play(rule, trace, { ladder, segmentMs, goalMs, segments }, clock) {
  const lines = [];
  let bufferMs = 0;
  let isPlaying = false;
  const passTo = (nowMs) => {
    if (isPlaying) bufferMs = Math.max(0, bufferMs - (nowMs - clock.nowMs));
    clock.nowMs = nowMs;
  };
  let before = null;
  for (let segment = 0; segment < segments; segment++) {
    if (bufferMs > goalMs) passTo(clock.nowMs + bufferMs - goalMs);
    let place = rule.choose({ bufferMs, segment, before });
    lines.push(['c', clock.nowMs, bufferMs, segment, place]);
    before = place;
    let isDone = false;
    while (!isDone) {
      const bytes = Math.floor((ladder[place] * segmentMs) / 8000);
      const requestedMs = clock.nowMs;
      const firstMs = requestedMs + trace.latencyMs;
      const endMs = doneMs(trace, firstMs, bytes);
      const request = { segment, place, bytes, requestedMs, firstMs, pieces: [] };
      rule.requested?.(request, bufferMs);
      let lower = -1;
      for (let tickMs = requestedMs + TICK_MS; tickMs < endMs; tickMs += TICK_MS) {
        passTo(tickMs);
        const received = Math.min(bytes, bytesBy(trace, firstMs, tickMs));
        if (received > 0) request.pieces.push({ atMs: tickMs, received });
        lower = rule.progress(request, { bufferMs, received });
        if (lower >= 0 || (tickMs - requestedMs) % WRITTEN_EVERY_MS === 0) {
          const [first] = request.pieces;
          lines.push(['p', tickMs, bufferMs, segment, place, received, first?.atMs ?? -1, first?.received ?? 0, request.pieces.length, lower]);
        }
        if (lower >= 0) break;
      }
      if (lower >= 0) {
        place = lower;
        before = place;
        continue;
      }
      passTo(endMs);
      lines.push(['d', endMs, bufferMs, segment, place, bytes, requestedMs, firstMs]);
      rule.arrived(request, { bufferMs, endMs });
      bufferMs += segmentMs;
      rule.buffered?.(request, bufferMs);
      isPlaying = true;
      isDone = true;
    }
  }
  return lines;
}
