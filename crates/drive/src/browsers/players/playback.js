'use strict';

// One playback, told as events. The adapter of a player is the function `attach`; all else is the same for every
// player. Times of events are those of performance.now(), times of media are seconds.

const video = document.querySelector('video');
const buffers = [];
const events = [];
let options = null;
let adapter = {};
let finish = null;
let end = null;
let hasPlayed = false;
let isWaiting = false;
/** Pictures that were on their way when playback stopped are shown, too: only the element says that it goes on. */
let goesOn = true;
let nextSeek = 0;
const failures = { audio: 0, video: 0 };

/** The buffers of tracks, whatever player made them. */
const addSourceBuffer = MediaSource.prototype.addSourceBuffer;
MediaSource.prototype.addSourceBuffer = function (type) {
  const buffer = addSourceBuffer.call(this, type);
  buffers.push({ track: type.startsWith('audio') ? 'audio' : 'video', buffer });
  return buffer;
};

/** The media after the position, in ranges with gaps below a tenth of a second. */
function ahead(ranges) {
  const gap = 0.1;
  let until = video.currentTime;
  for (let place = 0; place < ranges.length; place += 1) {
    if (ranges.start(place) <= until + gap && ranges.end(place) > until) until = ranges.end(place);
  }
  return until - video.currentTime;
}

function trackAhead(track) {
  // A buffer that was removed from its source throws.
  try {
    const own = buffers.findLast((of) => of.track === track);
    return own ? ahead(own.buffer.buffered) : 0;
  } catch {
    return 0;
  }
}

function note(what, details = {}) {
  if (end !== null || options === null) return;
  const quality = video.getVideoPlaybackQuality();
  const { currentTime, buffered } = video;
  const latency = options.live ? adapter.latency?.() : undefined;
  events.push({
    what,
    at: performance.now(),
    position: currentTime,
    buffered: ahead(buffered),
    trackBuffered: details.track ? trackAhead(details.track) : undefined,
    latency: Number.isFinite(latency) ? latency : undefined,
    frames: quality.totalVideoFrames,
    dropped: quality.droppedVideoFrames,
    ...details,
  });
}

function close(what, details) {
  if (end !== null || options === null) return;
  note(what, details);
  end = { what, ...details };
  finish?.();
}

/** A segment of a track failed. Players may try forever; h123 takes as many failures in a row for the end. */
function fail(details, reason) {
  const MOST_FAILURES = 6;
  note('failed', details);
  failures[details.track] += 1;
  if (failures[details.track] >= MOST_FAILURES) {
    giveUp('segment_failed', `${MOST_FAILURES} requests in a row for segments failed, the last: ${reason}`);
  }
}

function arrive(details) {
  failures[details.track] = 0;
  note('arrived', details);
}

/** Plays as soon as there is media. A player that replaces the source interrupts this, and begins again. */
function start() {
  video.play().catch((error) => {
    if (error.name !== 'AbortError') giveUp(undefined, error);
  });
}

/** The player cannot continue. `fault` is one of h123's names of faults. */
function giveUp(fault, reason) {
  close('gave_up', { fault, reason: String(reason) });
}

/** A picture is shown: `at` is when the browser submitted it. */
function showFrame(at) {
  if (end !== null) return;
  if (!hasPlayed || (isWaiting && goesOn)) {
    hasPlayed = true;
    isWaiting = false;
    note('playing', { at });
  }
  const seek = options.seeks[nextSeek];
  if (seek && video.currentTime >= seek.at) {
    nextSeek += 1;
    isWaiting = true;
    goesOn = false;
    note('seeked', { position: seek.to });
    video.currentTime = seek.to;
  }
}

function watchFrames() {
  video.requestVideoFrameCallback((_now, frame) => {
    showFrame(frame.presentationTime);
    watchFrames();
  });
}

video.addEventListener('waiting', () => {
  if (!hasPlayed || isWaiting || video.seeking || video.ended) return;
  isWaiting = true;
  goesOn = false;
  note('stalled');
});
video.addEventListener('seeked', () => {
  goesOn = true;
});
video.addEventListener('playing', () => {
  goesOn = true;
  // Sound without pictures has no frames.
  if (video.videoWidth === 0) showFrame(performance.now());
});
video.addEventListener('ended', () => close('ended'));
video.addEventListener('error', () => {
  const { code, message } = video.error ?? {};
  giveUp('media_invalid', `the video element reports error ${code}: ${message}`);
});

/** Plays, and resolves to what `told` returns when playback has ended. */
function play(given) {
  return new Promise((resolve) => {
    finish = () => resolve(told());
    options = { seeks: [], ...given };
    watchFrames();
    note('opened');
    try {
      adapter = attach(options);
    } catch (error) {
      giveUp(undefined, error);
    }
    if (options.live) {
      const over = () => (hasPlayed ? close('ended') : giveUp('never_played', 'nothing was played in time'));
      setTimeout(over, options.live.seconds * 1000);
    }
  });
}

/** What happened until now, as text. */
function told() {
  return JSON.stringify({ version: adapter.version, events, end });
}
