'use strict';

// hls.js: its options, and its events in the words of playback.js. Everything else is as shipped.

function attach({ manifest, buffer, fixed, live }) {
  const config = { maxBufferLength: buffer, maxMaxBufferLength: buffer, autoStartLoad: false };
  if (live) {
    config.liveSyncDuration = live.latency;
    if (live.catchUp) config.maxLiveSyncPlaybackRate = 1.05;
  }
  // A fixed level stays fixed after an error, too.
  if (fixed) config.preserveManualLevelOnError = true;
  const hls = new Hls(config);
  const { Events } = Hls;
  const about = (frag) => ({
    track: frag.type === 'audio' ? 'audio' : 'video',
    url: frag.url,
    number: frag.sn,
    start: frag.start,
    duration: frag.duration,
    bitsPerSecond: frag.type === 'audio' ? hls.audioTracks[frag.level]?.bitrate : hls.levels[frag.level]?.bitrate,
  });
  const isMedia = (frag) => frag && frag.sn !== 'initSegment' && (frag.type === 'main' || frag.type === 'audio');
  const tell = (what) => (_event, { frag }) => {
    if (isMedia(frag)) note(what, about(frag));
  };
  hls.on(Events.MANIFEST_PARSED, () => {
    if (fixed) {
      // Levels ascend by their bit rates, like the study's representations.
      const nearest = hls.levels.reduce(
        (best, level, place) =>
          Math.abs(level.bitrate - fixed.bitsPerSecond) < Math.abs(hls.levels[best].bitrate - fixed.bitsPerSecond) ? place : best,
        0,
      );
      hls.loadLevel = hls.levels.length === fixed.count ? fixed.place : nearest;
    }
    hls.startLoad();
  });
  hls.on(Events.MEDIA_ATTACHED, start);
  hls.on(Events.FRAG_LOADING, tell('requested'));
  hls.on(Events.FRAG_BUFFERED, (_event, { frag }) => {
    if (isMedia(frag)) arrive(about(frag));
  });
  hls.on(Events.FRAG_LOAD_EMERGENCY_ABORTED, tell('abandoned'));
  hls.on(Events.ERROR, (_event, data) => {
    const { details, error, fatal, frag } = data;
    if (details.startsWith('fragLoad') && isMedia(frag)) fail(about(frag), details);
    if (fatal) giveUp(fault(details), `${details}: ${error?.message ?? data.reason ?? 'no reason'}`);
  });
  hls.loadSource(manifest);
  hls.attachMedia(video);
  return { version: Hls.version, latency: () => hls.latency };

  function fault(details) {
    if (/^(manifest|level|audioTrack)Load/.test(details)) return 'manifest_failed';
    if (/^(manifest|level|playlist|audioTrack)/.test(details)) return 'manifest_invalid';
    if (/^fragLoad/.test(details)) return 'segment_failed';
    return 'media_invalid';
  }
}
