// A coordinator's HTTP server with one share, whose box is a program in this process.
import { EventEmitter, once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { BoxRow } from '../../../../coordinator/db/schema.ts'
import { OpenShares } from '../../../../coordinator/edge/shared-ports/open-shares.ts'
import {
  BoxConnections,
  type BoxConnectionsOptions,
} from '../../../../coordinator/edge/shared-ports/proxy/box-connections.ts'
import { createShareServer } from '../../../../coordinator/edge/shared-ports/share-server.ts'
import type { AuthorizeViewer } from '../../../../coordinator/edge/shared-ports/types.ts'
import { createProxyCheck } from '../../../../coordinator/http/client-address.ts'
import type { Route } from '../../../../coordinator/http/route.ts'
import type { PortShares, ServedShare, ShareBase } from '../../../../coordinator/port-shares/types.ts'
import type { Clock } from '../../../../shared/clock.ts'
import { systemClock } from '../../../../shared/clock.ts'
import { startTestServer } from '../../http/test-server.ts'

export const HOST = 'fig-3000-abc.shares.test'
const SUFFIX = '.shares.test'
/** Has the pages of the main origin. A proxy adds the path. */
export const PUBLIC_URL = 'https://boxwood.test/path'

const base: ShareBase = {
  getOrigin: (slug) => `http://${slug}${SUFFIX}`,
  parseHost: (host) => (host?.endsWith(SUFFIX) ? host.slice(0, -SUFFIX.length) : undefined),
}

/** Serves every request, without cookies. */
const serveAll: AuthorizeViewer = async (_share, { url, headers }) => ({
  type: 'serve',
  actor: null,
  url,
  cookie: headers.cookie,
})

export type ShareOptions = {
  /** The program that listens on the port of the share. */
  app?: RequestListener | Server
  share?: Partial<ServedShare>
  box?: Partial<BoxRow>
  authorize?: AuthorizeViewer
  limits?: Partial<BoxConnectionsOptions['limits']>
  bodyIdleMs?: number
  /** Default: connects to the app. */
  connect?: BoxConnectionsOptions['connect']
  clock?: Clock
  /** Routes of the API. */
  control?: Route[]
}

const LIMITS = { portConnections: 50, boxConnections: 100, portRequests: 100, idleMs: 600_000 }

export async function startShare(t: Test, options: ShareOptions = {}) {
  const share: ServedShare = {
    id: 'shr_1',
    workspaceId: 'ws_1',
    boxId: 'box_1',
    port: 3000,
    slug: 'fig-3000-abc',
    access: 'public',
    secretHash: null,
    expiresAt: null,
    rewritesHost: false,
    ...options.share,
  }
  const row = { desired_state: 'running', observed_state: 'running', ...options.box }
  const box = { id: 'box_1', hostname: 'fig', kind: 'box', ...row } as unknown as BoxRow
  const app =
    options.app instanceof Object && 'listen' in options.app ? options.app : createServer(options.app)
  const sockets = new Set<Socket>()
  app.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await once(app.listen(0, '127.0.0.1'), 'listening')
  const { port } = app.address() as AddressInfo
  const connectToApp = async () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    await once(socket, 'connect')
    return socket
  }
  const events: PortShares['events'] = new EventEmitter()
  const clock = options.clock ?? systemClock
  const boxConnections = new BoxConnections({
    limits: { ...LIMITS, ...options.limits },
    connect: options.connect ?? connectToApp,
  })
  const closing = new AbortController()
  const opened: string[] = []
  const shares = new Map([[share.slug, share]])
  const held = { count: 0 }
  /** beforeFind: delays the result of find(). */
  const hooks: { beforeFind?: (() => Promise<void>) | undefined } = {}
  const find: PortShares['find'] = async (slug) => {
    const found = shares.get(slug)
    await hooks.beforeFind?.()
    return found && { share: found, box }
  }
  const open = new OpenShares({ clock, shares: { events, find } })
  const server = await startTestServer(t, {
    clock,
    control: options.control ?? [],
    createHostHandlers: ({ connections, openRequests }) => [
      createShareServer({
        shares: {
          find,
          recordOpening: (id) => void opened.push(id),
        },
        base,
        publicUrl: PUBLIC_URL,
        authorize: options.authorize ?? serveAll,
        open,
        openRequests,
        boxConnections,
        bodyIdleMs: options.bodyIdleMs ?? 600_000,
        connections,
        limiter: {
          hold: () => {
            held.count += 1
            return () => {
              held.count -= 1
            }
          },
        },
        pauseGate: { version: 0, wait: () => undefined },
        isProxy: createProxyCheck([]),
        log: pino({ level: 'silent' }),
        closing: closing.signal,
      }),
    ],
  })
  t.teardown(() => {
    boxConnections.close()
    for (const socket of sockets) socket.destroy()
    app.close()
  })
  const { port: proxyPort } = new URL(server.url)
  return Object.assign(hooks, {
    ...{ server, share, box, boxConnections, open, opened, held, appSockets: sockets },
    ...{ host: '127.0.0.1', port: Number(proxyPort) },
    /** Ends the share, as its revocation does. */
    endShare() {
      shares.delete(share.slug)
      events.emit('ended', share.id, 'here')
    },
    /** As a revocation by another coordinator, while the connection for its notifications is lost. */
    endShareUnnoticed() {
      shares.delete(share.slug)
    },
    reportGap() {
      events.emit('missed')
    },
    /** As the start of a drain. */
    beginStop() {
      closing.abort()
      open.endStreams()
    },
  })
}

export type Share = Awaited<ReturnType<typeof startShare>>

/** Sends bytes on a new connection. `received` grows until the connection is closed. */
export async function openRaw(
  t: Test,
  { host, port }: Pick<Share, 'host' | 'port'>,
  bytes: string,
  { allowHalfOpen = false } = {},
) {
  const socket = connect({ host, port, noDelay: true, allowHalfOpen })
  t.teardown(() => socket.destroy())
  await once(socket, 'connect')
  const state = { received: '', isClosed: false, isEnded: false, socket }
  socket.setEncoding('latin1')
  socket.on('data', (text: string) => {
    state.received += text
  })
  socket.on('end', () => {
    state.isEnded = true
  })
  socket.on('error', () => undefined)
  socket.on('close', () => {
    state.isClosed = true
  })
  socket.write(bytes, 'latin1')
  return state
}
