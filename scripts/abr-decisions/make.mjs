// Makes the tables of decisions of dash.js and hls.js, or checks that they are current (--check).

import { readFileSync, writeFileSync } from 'node:fs';

// Time is virtual: the players get it from here.
const timers = new Map();
let timerNumber = 0;
const clock = {
  nowMs: 0,
  runTimers() {
    for (const [number, timer] of timers) {
      if (timer.atMs > clock.nowMs) continue;
      timer.atMs = clock.nowMs + timer.everyMs;
      if (!timer.repeats) timers.delete(number);
      timer.run();
    }
  },
};
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...parts) {
    super(...(parts.length === 0 ? [clock.nowMs] : parts));
  }
  static now() {
    return clock.nowMs;
  }
};
performance.now = () => clock.nowMs;
const add = (repeats) => (run, everyMs = 0) => {
  timers.set(++timerNumber, { run, everyMs, atMs: clock.nowMs + everyMs, repeats });
  return timerNumber;
};
const remove = (number) => timers.delete(number);
globalThis.window = globalThis.self = globalThis;
Object.assign(globalThis, { setInterval: add(true), setTimeout: add(false), clearInterval: remove, clearTimeout: remove });
globalThis.getComputedStyle ??= () => ({});
globalThis.navigator ??= { userAgent: 'node', language: 'en' };
globalThis.document ??= { createElement: () => ({ canPlayType: () => '' }), addEventListener() {}, removeEventListener() {} };
globalThis.addEventListener ??= () => {};
globalThis.removeEventListener ??= () => {};

const hlsjs = await import('./hlsjs.mjs');
const dashjs = await import('./dashjs.mjs');
const { TRACES } = await import('./traces.mjs');
const { play } = await import('./player.mjs');

const LADDER = [300_000, 700_000, 1_500_000, 3_000_000, 6_000_000];
const CASES = [
  { ladder: LADDER, segmentMs: 2000, segments: 70 },
  { ladder: [500_000, 1_200_000, 2_500_000, 5_000_000], segmentMs: 4000, segments: 40 },
];

function table(title, goalMs, makeRule) {
  const lines = [`# ${title}: made by scripts/abr-decisions; its lines are described in player.mjs`];
  for (const one of CASES) {
    for (const trace of TRACES) {
      const setting = { ...one, goalMs };
      clock.nowMs = 0;
      timers.clear();
      lines.push(['t', trace.name, setting.segmentMs, goalMs, ...setting.ladder].join(','));
      lines.push(...play(makeRule(setting), trace, setting, clock).map((line) => line.join(',')));
    }
  }
  return lines.join('\n') + '\n';
}

// The buffers are the players' defaults.
const tables = { hlsjs: table(`hls.js ${hlsjs.VERSION}`, 30_000, (setting) => hlsjs.makeRule(setting, clock)) };
for (const mode of Object.keys(dashjs.MODES)) {
  tables[mode] = table(`dash.js ${dashjs.VERSION}`, 18_000, (setting) => dashjs.makeRule(mode, setting, clock));
}
let stale = 0;
for (const [name, text] of Object.entries(tables)) {
  const file = new URL(`tables/${name}.csv`, import.meta.url);
  if (process.argv.includes('--check')) {
    let known = '';
    try {
      known = readFileSync(file, 'utf8');
    } catch {}
    if (known !== text) {
      console.error(`tables/${name}.csv is not current; run: npm ci && npm run make`);
      stale = 1;
    }
  } else {
    writeFileSync(file, text);
  }
}
process.exit(stale);
