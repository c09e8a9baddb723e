// Runs in the page once it is loaded: what it says about its own times.
(() => {
  const [navigation] = performance.getEntriesByType("navigation");
  const [firstPaint] = performance.getEntriesByName("first-contentful-paint");
  // Only an observer is given the largest paints; the last one is the largest.
  const observer = new PerformanceObserver(() => {});
  observer.observe({ type: "largest-contentful-paint", buffered: true });
  const largestPaint = observer.takeRecords().at(-1);
  return JSON.stringify({
    origin: performance.timeOrigin,
    domContentLoaded: navigation?.domContentLoadedEventEnd,
    load: navigation?.loadEventEnd,
    firstPaint: firstPaint?.startTime,
    largestPaint: largestPaint?.startTime,
  });
})()
