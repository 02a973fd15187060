// The observers that metrics and traces pass to the services. A service without an observer measures nothing.

import type { Ingest } from '../../agents/tunnel/reports.ts'
import type { TunnelRequestObserver } from '../../agents/tunnel/types.ts'
import type { StepObserver } from '../../boxes/lifecycle/step-observer.ts'
import type { StoreObserver } from '../../db/observed-driver.ts'
import type { EdgeLimit } from '../../edge/limits.ts'
import type { RequestObserver } from '../../http/observe-requests.ts'

export type Observers = {
  requests?: RequestObserver
  store?: StoreObserver
  tunnelRequests?: TunnelRequestObserver
  steps?: StepObserver
  /** Returns an Ingest that measures this one. */
  observeIngest?(ingest: Ingest): Ingest
  /** Called with the error code when an agent is rejected. */
  onAgentReject?(code: string): void
  onEdgeReject?(limit: EdgeLimit): void
}
