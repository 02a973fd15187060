// Starts an HTTP server with the given routes, for tests of the rules that hold for every route.
import { join } from 'node:path'
import { pino } from 'pino'
import type { Test } from 'tap'
import { z } from 'zod'
import { openDatabase } from '../../../coordinator/db/open.ts'
import { byKey } from '../../../coordinator/http/access.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import type { CredentialFinders, CredentialLookup } from '../../../coordinator/http/auth.ts'
import type { Connections } from '../../../coordinator/http/connections.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import type { HostHandler } from '../../../coordinator/http/host-handler.ts'
import type { LingerLimits } from '../../../coordinator/http/lingering-close.ts'
import { type ConnectionLimits, listen } from '../../../coordinator/http/listen.ts'
import { createOpenRequests, type OpenRequests } from '../../../coordinator/http/open-requests.ts'
import { type Route, route } from '../../../coordinator/http/route.ts'
import { type AgentConnectionHandlers, createHttpServer } from '../../../coordinator/http/server.ts'
import type { Clock } from '../../../shared/clock.ts'
import { createFakeReplica } from '../../support/replica.ts'
import { createTempDir } from '../../support/temp-dir.ts'

export const actor: Actor = {
  credential: { type: 'key', id: 'key_1', kind: 'api', expiresAt: null, isUnverified: false },
  boxIds: null,
  access: null,
  workspaceId: 'ws_1',
  userId: 'usr_1',
  role: 'owner',
}

/** GET /api/v1/fig, which needs a key that may read boxes. */
export const figRoute = route({
  method: 'GET',
  path: '/fig',
  summary: 'Get a fig',
  access: byKey('boxes', 'read'),
  responses: { 200: z.object({}) },
  handler: async () => ({}),
})

export type TestServerOptions = {
  control?: Route[]
  edge?: Route[]
  /** Key → lookup result, or the error of the lookup. The key dcp_owner always exists. */
  keys?: Record<string, CredentialLookup | Error>
  clock?: Clock
  limits?: ConnectionLimits
  linger?: LingerLimits
  /** Default: responds with status 418. */
  handleUpgrade?: AgentConnectionHandlers['handleUpgrade']
  bodyTimeoutMs?: number
  createHostHandlers?: (parts: { connections: Connections; openRequests: OpenRequests }) => HostHandler[]
  /** Default: no limit. */
  countRequest?: (keyId: string, isForward?: boolean) => Promise<void>
}

/** Listens on a free port and closes after the test. `send` uses the key dcp_owner by default. */
export async function startTestServer(t: Test, options: TestServerOptions = {}) {
  const { control = [], edge = [], keys = {}, clock = { now: () => Date.now() }, limits, linger } = options
  const { handleUpgrade = (_request, socket) => socket.end('HTTP/1.1 418 Tunnel\r\n\r\n') } = options
  const { countRequest = async () => undefined } = options
  const dir = createTempDir(t, 'http')
  const db = await openDatabase({ kind: 'sqlite', file: join(dir, 'test.db') })
  for (const id of ['ws_1', 'ws_2'])
    await db
      .insertInto('workspaces')
      .values({ id, name: id, zero_data_retention: 0, created_at: 0 })
      .execute()
  const keyLookup = new Map<string, CredentialLookup | Error>(
    Object.entries({ dcp_owner: { actor }, ...keys }).map(([key, result]) => [hashSecret(key), result]),
  )
  const finders: CredentialFinders = {
    findSession: async () => ({ rejected: 'unknown' }),
    findTicket: async () => ({ rejected: 'unknown' }),
    findKey: async (hash) => {
      const result = keyLookup.get(hash) ?? { rejected: 'unknown' }
      if (result instanceof Error) throw result
      return result
    },
  }
  const logLines: string[] = []
  const listening = await listen({ host: '127.0.0.1', port: 0 }, limits)
  const openRequests = createOpenRequests({ clock })
  const { connections } = listening
  const http = await createHttpServer({
    listening,
    log: pino({ level: 'debug' }, { write: (line: string) => void logLines.push(line) }),
    context: {
      db,
      clock,
      replica: createFakeReplica(),
      denials: { record: () => undefined },
      limiter: { countRequest },
      finders,
      assertOperator: async () => undefined,
      ...(options.bodyTimeoutMs !== undefined && { bodyTimeoutMs: options.bodyTimeoutMs }),
      openRequests,
    },
    control,
    edge,
    agents: {
      handleUpgrade,
      handleTransfer: (_request, response) => response.writeHead(418).end(),
    },
    health: { getUnreadyReason: async () => null },
    publicUrl: 'http://boxes.test',
    hostHandlers: options.createHostHandlers?.({ connections, openRequests }) ?? [],
    ...(linger && { linger }),
  })
  t.teardown(async () => {
    await http.close()
    await db.destroy()
  })

  async function send(method: string, path: string, init: SendOptions = {}) {
    const { body, headers = {}, key = 'dcp_owner' } = init
    const isRaw = typeof body === 'string' || body instanceof Uint8Array || body === undefined
    const response = await fetch(listening.url + path, {
      method,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(isRaw ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isRaw ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, json: parseJson(text) }
  }
  const countConnections = () =>
    new Promise<number>((resolve, reject) =>
      listening.server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
    )
  const revoke = (key: string) => void keyLookup.set(hashSecret(key), { rejected: 'revoked' })
  return { url: listening.url, connections, openRequests, countConnections, http, db, logLines, revoke, send }
}

type SendOptions = { body?: unknown; headers?: Record<string, string>; key?: string | null }

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
function parseJson(text: string): any {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
