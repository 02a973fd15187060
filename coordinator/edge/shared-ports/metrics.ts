// The metrics of shared ports.
import type { Metric } from '../../http/module.ts'
import type { OpenShares } from './open-shares.ts'
import type { BoxConnections } from './proxy/box-connections.ts'

export const createShareMetrics = (
  open: Pick<OpenShares, 'size'>,
  connections: Pick<BoxConnections, 'size'>,
): Metric[] => [
  {
    type: 'gauge',
    name: 'boxwood_share_requests_open',
    help: 'Open requests and WebSockets of viewers of shared ports.',
    collect: () => new Map([['', open.size]]),
  },
  {
    type: 'gauge',
    name: 'boxwood_share_connections',
    help: 'Connections to shared ports of boxes.',
    collect: () => new Map([['', connections.size.connections]]),
  },
]
