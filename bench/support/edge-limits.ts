// Settings of a coordinator for benchmarks.

/** Edge limits far above the spec's, because the benchmarks send more than 20 requests per second. */
export const RAISED_LIMITS = {
  BOXWOOD_EDGE_RATE: '1000000',
  BOXWOOD_EDGE_CONCURRENCY: '1000',
  BOXWOOD_EDGE_STREAMS: '1000',
}
