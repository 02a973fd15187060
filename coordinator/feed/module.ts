// The feed of boxes, snapshots and operations, which the dashboard follows.
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import { createFeedMetric } from './feed-metric.ts'
import { Feeds, type FeedsOptions } from './feeds.ts'
import { feedRoutes } from './routes.ts'

export type FeedModuleContext = ModuleBase & Pick<FeedsOptions, 'boxes'>

export function feedModule({ db, clock, log, boxes }: FeedModuleContext): Module {
  const feeds = new Feeds({ db, clock, log, boxes })
  return {
    routes: withTag('Feed', feedRoutes({ feeds })),
    metrics: [createFeedMetric(feeds)],
    beginStop: () => feeds.close(),
  }
}
