// The edge: routes the requests for one box to its agent.

import type { LoadPlanLimits } from '../admission/plan-limits.ts'
import type { AgentConnections } from '../agents/tunnel/agent-connections.ts'
import type { Streams, Transfers, Tunnels } from '../agents/tunnel/types.ts'
import {
  createConnectRecorder,
  createDesktopRecorder,
  createForwardRecorder,
} from '../audit/record-connect.ts'
import type { Limits } from '../base/limits.ts'
import type { Lifecycle } from '../boxes/lifecycle/lifecycle.ts'
import { assertBoxAvailable } from '../boxes/refuse-unavailable.ts'
import { createPauseGate } from '../boxes/schedules/pause-gate.ts'
import type { BoxService } from '../boxes/service.ts'
import type { DownloadLinks } from '../download-links/service.ts'
import type { CommandTracker } from '../history/commands/command-tracker.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { Peers } from '../replicas/peers.ts'
import type { Replica } from '../replicas/replica.ts'
import { createAttachmentCounts } from './attachment-counts.ts'
import { createConnectToPort } from './connect-to-port.ts'
import type { EdgeContext } from './context.ts'
import { downloadLinkRoutes } from './download-links.ts'
import { createForwardExchange, createForwardToOwner } from './forward-to-owner.ts'
import { createEdgeLimiter, EDGE_SHARES, type EdgeLimit, type EdgeLimiter } from './limits.ts'
import { createResponseParser } from './response-parser.ts'
import { edgeRoutes } from './routes.ts'
import { createSlotMetric } from './slot-metric.ts'

/** The limits of the edge. Upgrades and automatic pauses wait while requests to their box are in flight. */
export function edgeLimitsModule({
  config,
  observers,
}: ModuleBase & { config: { limits: Limits }; observers: { onEdgeReject?(limit: EdgeLimit): void } }) {
  const limiter: EdgeLimiter = createEdgeLimiter(
    {
      requestsPerSecond: config.limits.edgeRequestsPerSecond,
      concurrency: config.limits.edgeConcurrency,
      streams: config.limits.edgeStreams,
      attachments: config.limits.edgeAttachments,
      forwards: config.limits.edgeForwards,
      terminals: config.limits.terminals,
      perUser: Math.ceil(config.limits.maxConnections * EDGE_SHARES.user),
      perWorkspace: Math.ceil(config.limits.maxConnections * EDGE_SHARES.workspace),
    },
    { onReject: observers.onEdgeReject },
  )
  return {
    services: {
      limiter,
      pauseGate: createPauseGate(limiter.hasRequests),
      attachments: createAttachmentCounts(),
    },
    metrics: [createSlotMetric(limiter)],
  } satisfies Module
}

export type EdgeModuleContext = ModuleBase &
  Pick<EdgeContext, 'limiter' | 'pauseGate' | 'attachments'> & {
    loadPlanLimits: LoadPlanLimits
    team: { recordPrompt: EdgeContext['recordPrompt'] }
    commands: { tracker: CommandTracker }
    boxes: BoxService
    downloadLinks: DownloadLinks
    lifecycle: Pick<Lifecycle, 'waitUntilRunning'>
    tunnels: Tunnels
    agentConnections: Pick<AgentConnections, 'transfers' | 'streams' | 'sockets' | 'owner' | 'readOwner'>
    replica: Pick<Replica, 'host'>
    /** null: this is the only coordinator of the database. */
    peers: Peers | null
    overrides: { streams?: Streams; transfers?: Transfers }
  }

export function edgeModule(context: EdgeModuleContext) {
  const { db, clock, limiter, pauseGate, attachments, team, commands, boxes, lifecycle, tunnels } = context
  const { agentConnections, downloadLinks, overrides, loadPlanLimits, peers, replica } = context
  const { transfers, sockets, streams } = agentConnections
  const closing = new AbortController()
  const responseParser = createResponseParser()
  const edge: EdgeContext = {
    limiter,
    pauseGate,
    attachments,
    commandTracker: commands.tracker,
    loadTerminalLimit: async (workspaceId) => (await loadPlanLimits(db, workspaceId)).terminals,
    assertAvailable: (box) => assertBoxAvailable(db, box, replica.host, 'box_unreachable'),
    boxes,
    tunnels,
    transfers: overrides.transfers ?? transfers,
    sockets,
    streams: overrides.streams ?? streams,
    responseParser,
    recordConnect: createConnectRecorder({ db, clock }),
    recordForward: createForwardRecorder({ db, clock }),
    recordDesktop: createDesktopRecorder({ db, clock }),
    recordPrompt: team.recordPrompt,
    async waitUntilRunning(boxId, ms, signal) {
      await lifecycle.waitUntilRunning(boxId, ms, signal)
    },
    closing: closing.signal,
  }
  const connectToPort = createConnectToPort(edge)
  const forwardExchange = peers === null ? undefined : createForwardExchange({ agentConnections, peers })
  const forwardToOwner = forwardExchange && createForwardToOwner({ boxes, tunnels, forwardExchange })
  return {
    services: { edge, connectToPort, forwardExchange, forwardToOwner },
    routes: withTag('Boxes', downloadLinkRoutes(edge, downloadLinks)),
    edgeRoutes: edgeRoutes(edge, connectToPort),
    beginStop: () => closing.abort(),
    close: { name: 'close the response parser', run: responseParser.close },
  } satisfies Module
}
