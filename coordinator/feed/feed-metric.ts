// The number of open feeds, as a metric.
import type { Metric } from '../http/module.ts'
import type { Feeds } from './feeds.ts'

export const createFeedMetric = (feeds: Pick<Feeds, 'count'>): Metric => ({
  type: 'gauge',
  name: 'boxwood_feeds_open',
  help: 'Open feeds, which follow boxes, snapshots and operations.',
  collect: () => new Map([['', feeds.count]]),
})
