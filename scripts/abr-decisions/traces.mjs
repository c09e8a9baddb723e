// Throughput over time, made from seeds and recorded (record.sh): each trace is a list of bit rates in kbit/s, one for each second.

import { readFileSync } from 'node:fs';

/** Numbers from 0 to 1 from a seed (a linear congruential generator with the constants of ISO C). */
function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return ((state >>> 8) & 0xffff) / 0x10000;
  };
}

const SECONDS = 900;
const seconds = (rate) => Array.from({ length: SECONDS }, (_, second) => Math.round(rate(second)));

/** A random walk between two rates, as on a mobile network. */
function walk(seed, least, most, step) {
  const next = random(seed);
  let rate = (least + most) / 2;
  return seconds(() => {
    rate = Math.min(most, Math.max(least, rate * (1 + (next() - 0.5) * step)));
    return rate;
  });
}

/** Around a rate, as on a line. */
function noise(seed, rate, share) {
  const next = random(seed);
  return seconds(() => rate * (1 + (next() - 0.5) * share));
}

/** What condense.py wrote. */
function recorded() {
  const lines = readFileSync(new URL('recorded.csv', import.meta.url), 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [name, latencyMs, ...kbits] = line.split(',');
    return { name, latencyMs: Number(latencyMs), kbits: kbits.map(Number) };
  });
}

export const TRACES = [
  { name: 'line', latencyMs: 30, kbits: noise(1, 4500, 0.3) },
  { name: 'slow', latencyMs: 80, kbits: noise(2, 900, 0.5) },
  { name: 'steps', latencyMs: 50, kbits: seconds((second) => [8000, 1200, 5000, 500][Math.floor(second / 25) % 4]) },
  { name: 'saw', latencyMs: 40, kbits: seconds((second) => 600 + 180 * (second % 40)) },
  { name: 'cliffs', latencyMs: 20, kbits: seconds((second) => (second % 24 < 9 ? 15000 : 250)) },
  { name: 'mobile', latencyMs: 60, kbits: walk(3, 300, 12000, 0.9) },
  { name: 'crowd', latencyMs: 100, kbits: walk(4, 200, 3000, 1.2) },
  ...recorded(),
];

/** When a download of `bytes` that begins at `fromMs` has `bytes`, in whole milliseconds. */
export function doneMs(trace, fromMs, bytes) {
  let left = bytes * 8;
  let nowMs = fromMs;
  while (true) {
    const rate = trace.kbits[Math.floor(nowMs / 1000) % trace.kbits.length];
    const endMs = (Math.floor(nowMs / 1000) + 1) * 1000;
    const bits = (endMs - nowMs) * rate;
    if (bits >= left) return nowMs + Math.ceil(left / rate);
    left -= bits;
    nowMs = endMs;
  }
}

/** The bytes that have arrived by `nowMs` of a download that begins at `fromMs`. */
export function bytesBy(trace, fromMs, nowMs) {
  let bits = 0;
  for (let at = fromMs; at < nowMs; ) {
    const endMs = Math.min(nowMs, (Math.floor(at / 1000) + 1) * 1000);
    bits += (endMs - at) * trace.kbits[Math.floor(at / 1000) % trace.kbits.length];
    at = endMs;
  }
  return Math.floor(bits / 8);
}
