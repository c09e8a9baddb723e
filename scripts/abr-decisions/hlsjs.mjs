// The rule of hls.js: its own AbrController, in a frame that stands for the rest of the player.

import Hls from 'hls.js';

export const NAME = 'hlsjs';
export const VERSION = Hls.version;

export function makeRule({ ladder, segmentMs }, clock) {
  const levels = ladder.map((bitrate) => ({
    bitrate,
    maxBitrate: bitrate,
    averageBitrate: bitrate,
    frameRate: 25,
    videoRange: 'SDR',
    codecSet: 'avc1',
    codecs: '',
    loadError: 0,
    fragmentError: 0,
    audioGroups: undefined,
    supportedResult: { supported: true, decodingInfoResults: [] },
    details: { live: false, averagetargetduration: segmentMs / 1000 },
  }));
  let aborted = false;
  let buffer = 0;
  let hasMedia = false;
  const hls = {
    config: { ...Hls.DefaultConfig },
    logger: { log() {}, warn() {}, info() {}, trace() {}, debug() {}, error() {} },
    levels,
    allAudioTracks: [],
    firstLevel: 0,
    loadLevel: 0,
    minAutoLevel: 0,
    maxAutoLevel: levels.length - 1,
    autoLevelEnabled: true,
    latestLevelDetails: levels[0].details,
    media: { paused: false, playbackRate: 1, get readyState() { return hasMedia ? 4 : 0; } },
    get mainForwardBufferInfo() { return { len: buffer / 1000 }; },
    get loadLevelObj() { return levels[hls.loadLevel]; },
    set nextLoadLevel(level) { hls.loadLevel = level; },
    get nextLoadLevel() { return hls.loadLevel; },
    set nextAutoLevel(level) { abr.nextAutoLevel = level; },
    get nextAutoLevel() { return abr.nextAutoLevel; },
    on() {},
    off() {},
    trigger() { aborted = true; },
  };
  const abr = new Hls.DefaultConfig.abrController(hls);
  let frag = null;
  const start = (request) => {
    frag = {
      type: 'main',
      sn: request.segment,
      level: request.place,
      duration: segmentMs / 1000,
      bitrate: ladder[request.place],
      bitrateTest: false,
      stats: { aborted: false, loaded: 0, total: request.bytes, loading: { start: request.requestedMs, first: 0, end: 0 }, parsing: { start: 0, end: 0 } },
      abortRequests() { this.stats.aborted = true; aborted = true; },
    };
    hls.loadLevel = request.place;
    abr.onFragLoading('hlsFragLoading', { frag });
  };
  return {
    choose({ bufferMs, segment }) {
      buffer = bufferMs;
      // The first segment is the test of the bandwidth, at the lowest representation.
      return segment === 0 ? 0 : abr.nextAutoLevel;
    },
    requested(request, bufferMs) {
      buffer = bufferMs;
      start(request);
    },
    progress(request, { bufferMs, received }) {
      buffer = bufferMs;
      frag.stats.loaded = received;
      // The first byte counts from when the request saw it, as in the table.
      frag.stats.loading.first = request.pieces.length > 0 ? request.pieces[0].atMs : 0;
      aborted = false;
      clock.runTimers();
      return aborted ? hls.nextLoadLevel : -1;
    },
    arrived(request, { bufferMs, endMs }) {
      buffer = bufferMs;
      const { stats } = frag;
      stats.loaded = request.bytes;
      stats.loading.first = request.firstMs;
      stats.loading.end = stats.parsing.end = endMs;
      abr.onFragLoaded('hlsFragLoaded', { frag, part: null });
      abr.onFragBuffered('hlsFragBuffered', { frag, part: null });
      hasMedia = true;
    },
    buffered(_request, bufferMs) {
      buffer = bufferMs;
    },
  };
}
