// The server of shared ports: serves the origins of links from the programs that listen on ports of boxes (spec §4.5).

import { SHARE_LIMITS } from '../../../shared/limits.ts'
import type { Tunnels } from '../../agents/tunnel/types.ts'
import type { PauseGate } from '../../boxes/schedules/pause-gate.ts'
import { createProxyCheck } from '../../http/client-address.ts'
import type { Connections } from '../../http/connections.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import type { OpenRequests } from '../../http/open-requests.ts'
import type { HttpSettings } from '../../http/settings.ts'
import type { PortShares } from '../../port-shares/types.ts'
import type { ConnectToPort } from '../connect-to-port.ts'
import type { ForwardExchange } from '../forward-to-owner.ts'
import type { EdgeLimiter } from '../limits.ts'
import { createShareMetrics } from './metrics.ts'
import { OpenShares } from './open-shares.ts'
import { BoxConnections } from './proxy/box-connections.ts'
import { createShareServer } from './share-server.ts'
import type { AuthorizeViewer } from './types.ts'

export type SharedPortsModuleContext = ModuleBase & {
  config: Pick<HttpSettings, 'trustedProxies'>
  portShares: PortShares
  authorizeViewer: AuthorizeViewer
  connectToPort: ConnectToPort
  tunnels: Tunnels
  limiter: EdgeLimiter
  pauseGate: PauseGate
  openRequests: OpenRequests
  connections: Connections
  forwardExchange: ForwardExchange | undefined
  urls: { public: string }
}

/** How long a request waits for a box whose agent reconnects. After that the viewer gets a page that reloads itself. */
const RECONNECT_WAIT_MS = 5_000

export function sharedPortsModule(context: SharedPortsModuleContext): Module {
  const { portShares, authorizeViewer, connectToPort, tunnels, clock } = context
  const closing = new AbortController()
  const closed = new AbortController()
  const open = new OpenShares({ clock, shares: portShares })
  const boxConnections = new BoxConnections({
    limits: SHARE_LIMITS,
    async connect(box, port) {
      const { signal } = closed
      const tunnel = await tunnels.wait(box.id, RECONNECT_WAIT_MS, signal)
      return connectToPort({ box, tunnel, signal }, port)
    },
  })
  return {
    hostHandler: createShareServer({
      shares: portShares,
      base: portShares.base,
      publicUrl: context.urls.public,
      authorize: authorizeViewer,
      open,
      openRequests: context.openRequests,
      boxConnections,
      bodyIdleMs: SHARE_LIMITS.bodyIdleMs,
      connections: context.connections,
      forwardExchange: context.forwardExchange,
      limiter: context.limiter,
      pauseGate: context.pauseGate,
      isProxy: createProxyCheck(context.config.trustedProxies),
      log: context.log,
      closing: closing.signal,
    }),
    metrics: createShareMetrics(open, boxConnections),
    beginStop() {
      closing.abort()
      open.endStreams()
    },
    close: {
      name: 'close the connections to shared ports',
      run() {
        closed.abort()
        boxConnections.close()
      },
    },
  }
}
