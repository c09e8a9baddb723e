// The rules of dash.js: its own AbrController with its rules, in a frame that stands for the rest of the player.

import * as dashjs from './node_modules/dashjs/dist/modern/esm/dash.all.debug.js';

const { FactoryMaker, MediaPlayer } = dashjs.default ?? dashjs;

/** `stallThreshold`: the buffer counts as empty up to this level. */
const EMPTY_MS = 300;

export const VERSION = MediaPlayer().create().getVersion();

export const MODES = {
  dashjs: {},
  dashjs_throughput: { bolaRule: { active: false } },
  dashjs_bola: { throughputRule: { active: false } },
};

export function makeRule(mode, { ladder, segmentMs, goalMs }, clock) {
  const context = {};
  const singleton = (name) => FactoryMaker.getSingletonFactoryByName(name)(context).getInstance();
  const settings = singleton('Settings');
  settings.update({
    debug: { logLevel: 0 },
    streaming: { buffer: { bufferTimeDefault: goalMs / 1000 }, abr: { rules: MODES[mode] } },
  });
  const eventBus = singleton('EventBus');
  const streamInfo = { id: 'stream', manifestInfo: { isDynamic: false } };
  const mediaInfo = { id: 'video', type: 'video', index: 0, streamInfo };
  const representations = ladder.map((bandwidth, absoluteIndex) => ({
    id: `r${absoluteIndex}`,
    absoluteIndex,
    bandwidth,
    bitrateInKbit: bandwidth / 1000,
    mediaInfo,
    fragmentDuration: segmentMs / 1000,
    pixelsPerSecond: 0,
    scale: 1,
  }));
  let bufferMs = 0;
  let bufferState = null;
  let current = representations[0];
  const playbackController = {
    getIsDynamic: () => false,
    getLowLatencyModeEnabled: () => false,
    getLiveDelay: () => NaN,
  };
  const dashMetrics = {
    getCurrentBufferState: () => (bufferState ? { state: bufferState } : null),
    getCurrentBufferLevel: () => bufferMs / 1000,
  };
  const mediaPlayerModel = {
    getBufferTimeDefault: () => goalMs / 1000,
    getAbrBitrateParameter: () => -1,
  };
  const scheduleController = { setTimeToLoadDelay() {}, getPlaybackController: () => playbackController };
  const streamProcessor = {
    getStreamInfo: () => streamInfo,
    getMediaInfo: () => mediaInfo,
    getType: () => 'video',
    getScheduleController: () => scheduleController,
    getLastSegment: () => null,
    getRepresentation: () => current,
    getRepresentationController: () => ({
      getCurrentRepresentation: () => current,
      getCurrentCompositeRepresentation: () => current,
    }),
    getFragmentModel: () => ({ getRequests: () => [{}] }),
    getAllMediaInfos: () => [mediaInfo],
  };
  const throughputController = singleton('ThroughputController');
  throughputController.setConfig({ settings, playbackController });
  throughputController.initialize();
  const abr = singleton('AbrController');
  abr.setConfig({
    settings,
    dashMetrics,
    mediaPlayerModel,
    throughputController,
    adapter: {
      getVoRepresentations: () => representations,
      areMediaInfosEqual: (one, other) => one === other,
    },
    videoModel: { getPlaybackQuality: () => null },
    streamController: { getActiveStreamInfo: () => streamInfo },
    domStorage: { getSavedBitrateSettings: () => NaN, setSavedBitrateSettings() {} },
    customParametersModel: {
      getAbrCustomRules: () => [],
      getCustomCapabilitiesFilters: () => [],
    },
    capabilities: { areKeyIdsUsable: () => true, areKeyIdsExpired: () => false },
    cmsdModel: { getMaxBitrate: () => -1 },
  });
  abr.initialize();
  abr.registerStreamType('video', streamProcessor);
  let switched = null;
  eventBus.on('qualityChangeRequested', (event) => {
    current = event.newRepresentation;
    switched = current;
  }, {});
  const follow = (level) => {
    bufferMs = level;
    eventBus.trigger('metricAdded', { metric: 'BufferLevel', mediaType: 'video', value: { level } });
    const state = level > EMPTY_MS ? 'bufferLoaded' : bufferState === null ? null : 'bufferStalled';
    if (state !== bufferState) {
      bufferState = state;
      if (state === 'bufferStalled') {
        eventBus.trigger('bufferStalled', { mediaType: 'video', streamId: 'stream' }, { streamId: 'stream', mediaType: 'video' });
      }
    }
  };
  let dash = null;
  return {
    choose({ bufferMs: level, segment }) {
      // The end of the time in which no higher representation is loaded after an abandoned one.
      clock.runTimers();
      follow(level);
      if (segment === 0) {
        current = abr.getOptimalRepresentationForBitrate(mediaInfo, abr.getInitialBitrateFor('video'), true);
      }
      abr.checkPlaybackQuality('video', 'stream');
      return current.absoluteIndex;
    },
    requested(request) {
      current = representations[request.place];
      dash = {
        mediaType: 'video',
        index: request.segment,
        duration: segmentMs / 1000,
        representation: current,
        firstByteDate: null,
        bytesTotal: request.bytes,
        bytesLoaded: 0,
        traces: [],
      };
    },
    progress(request, { bufferMs: level, received }) {
      clock.runTimers();
      bufferMs = level;
      switched = null;
      if (request.pieces.length > dash.traces.length) {
        const [first] = request.pieces;
        dash.firstByteDate = new Date(first.atMs);
        const last = request.pieces.at(-2) ?? { atMs: request.requestedMs, received: 0 };
        dash.traces.push({ b: [received - last.received], d: clock.nowMs - last.atMs });
      }
      dash.bytesLoaded = received;
      eventBus.trigger('loadingProgress', { request: dash, streamId: 'stream' }, { streamId: 'stream', mediaType: 'video' });
      if (!switched) return -1;
      eventBus.trigger('fragmentLoadingAbandoned', { streamId: 'stream', mediaType: 'video' });
      return switched.absoluteIndex;
    },
    arrived(request, { bufferMs: level, endMs }) {
      if (bufferState !== null) follow(level);
      bufferMs = level;
      const value = {
        type: 'MediaSegment',
        _streamId: 'stream',
        trequest: new Date(request.requestedMs),
        tresponse: new Date(request.firstMs),
        _tfinish: new Date(endMs),
        trace: [{ b: [request.bytes], d: endMs - request.requestedMs }],
        _resourceTimingValues: { transferSize: request.bytes, decodedBodySize: request.bytes, responseStart: request.firstMs, responseEnd: endMs },
      };
      eventBus.trigger('metricAdded', { metric: 'HttpList', mediaType: 'video', value });
      const chunk = { start: (request.segment * segmentMs) / 1000, duration: segmentMs / 1000, representation: representations[request.place] };
      eventBus.trigger('mediaFragmentLoaded', { streamId: 'stream', chunk });
      eventBus.trigger('bytesAppendedEndFragment', { mediaType: 'video', startTime: chunk.start });
    },
    buffered(_request, level) {
      follow(level);
    },
  };
}
