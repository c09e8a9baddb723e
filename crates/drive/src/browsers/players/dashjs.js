'use strict';

// dash.js: its options, and its events in the words of playback.js. Everything else is as shipped.

function attach({ manifest, buffer, fixed, rule, live }) {
  const player = dashjs.MediaPlayer().create();
  const streaming = {
    buffer: { bufferTimeDefault: buffer, bufferTimeAtTopQuality: buffer, bufferTimeAtTopQualityLongForm: buffer },
    abr: { rules: {} },
    // The clocks of the lab are one clock, and nobody else can be asked for the time.
    utcSynchronization: { enabled: false },
  };
  if (rule === 'dashjs_throughput') streaming.abr.rules.bolaRule = { active: false };
  if (rule === 'dashjs_bola') streaming.abr.rules.throughputRule = { active: false };
  if (fixed) {
    // As of h123's own player, the sound is the best that there is.
    streaming.abr.autoSwitchBitrate = { audio: false, video: false };
    streaming.abr.initialBitrate = { audio: Number.MAX_SAFE_INTEGER, video: fixed.bitsPerSecond / 1000 };
  }
  if (live) {
    streaming.delay = { liveDelay: live.latency };
    streaming.liveCatchup = live.catchUp
      ? { enabled: true, playbackRate: { min: -0.05, max: 0.05 } }
      : { enabled: false };
  }
  player.updateSettings({ streaming });
  const { events: Events } = dashjs.MediaPlayer;
  const loaded = { audio: null, video: null };
  const about = (request) => ({
    track: request.mediaType,
    url: request.url,
    number: request.index,
    start: request.startTime,
    duration: request.duration,
    bitsPerSecond: request.representation?.bandwidth,
  });
  const isMedia = (request) => request?.type === 'MediaSegment' && request.mediaType in loaded;
  player.on(Events.FRAGMENT_LOADING_STARTED, ({ request }) => {
    if (isMedia(request)) note('requested', about(request));
  });
  player.on(Events.FRAGMENT_LOADING_COMPLETED, ({ request, error }) => {
    if (!isMedia(request)) return;
    if (error) fail(about(request), `error ${error.code}: ${error.message}`);
    else loaded[request.mediaType] = request;
  });
  // The event of the buffer is internal: the segment is in it, and its level is known.
  player.on('bytesAppendedEndFragment', ({ mediaType, segmentType }) => {
    const request = loaded[mediaType];
    if (segmentType !== 'MediaSegment' || !request) return;
    loaded[mediaType] = null;
    arrive(about(request));
  });
  player.on(Events.FRAGMENT_LOADING_ABANDONED, ({ request }) => {
    if (isMedia(request)) note('abandoned', about(request));
  });
  player.on(Events.ERROR, ({ error }) => {
    const { code, message } = error ?? {};
    giveUp(fault(code), `error ${code}: ${message}`);
  });
  player.on(Events.PLAYBACK_ERROR, ({ error }) => giveUp('media_invalid', `playback error ${error?.code ?? error}`));
  player.initialize(video, manifest, true);
  return { version: player.getVersion(), latency: () => player.getCurrentLiveLatency() };

  function fault(code) {
    if (code === 11 || code === 25) return 'manifest_failed';
    if (code === 10 || code === 31 || code === 32 || code === 34) return 'manifest_invalid';
    if (code === 17 || code === 27 || code === 28) return 'segment_failed';
    return 'media_invalid';
  }
}
