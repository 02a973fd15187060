// A fake coordinator for tests of the box command, over real HTTP. Box records are in memory, home directories on disk.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { type Box, boxSchema, createBoxRequestSchema } from '../../shared/api/boxes.ts'
import { execRequestSchema } from '../../shared/api/exec.ts'
import { terminalStartSchema } from '../../shared/api/terminal.ts'
import { ApiError, controlErrorBody, edgeErrorBody } from '../../shared/errors.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { type AttachedCommands, createAttachedCommands } from './fake-attach.ts'
import { runLocally } from './fake-exec.ts'
import { createFakeTerminals, type FakeTerminals } from './fake-terminal.ts'

export const KEY = 'dcp_0123456789abcdef0123456789abcdef0123456789abcdef'

export type FakeCoordinator = {
  url: string
  /** The home directory of a box. */
  getHome(boxName: string): string
  boxes: Box[]
  attached: AttachedCommands
  terminals: FakeTerminals
  /** All requests received: `METHOD /path` and the headers. */
  requests: { line: string; headers: IncomingMessage['headers'] }[]
  /**
   * Replaces the route for the next request whose line starts with `linePrefix`. Handlers with the same prefix are
   * called in the order in which they were added.
   */
  handleNext(linePrefix: string, handler: OneTimeHandler): void
  addBox(name: string, fields?: Partial<Box>): Promise<Box>
  /** Adds routes: regular expressions of `METHOD /path`. */
  addRoutes(routes: [RegExp, Handler][]): void
  /** Closes the server and all connections, waits for `action`, and listens again on the same port. */
  stopDuring(action: () => Promise<void>): Promise<void>
}

export type Handler = (request: IncomingMessage, response: ServerResponse, match: string[]) => Promise<void>
export type OneTimeHandler = (response: ServerResponse, request: IncomingMessage) => void

export async function startFakeCoordinator(t: Test): Promise<FakeCoordinator> {
  const homesDir = createTempDir(t, 'homes')
  const boxes: Box[] = []
  const terminals = createFakeTerminals()
  const attached = createAttachedCommands(terminals)
  const requests: FakeCoordinator['requests'] = []
  const oneTimeHandlers: { linePrefix: string; handler: OneTimeHandler }[] = []
  const getHome = (boxName: string) => join(homesDir, boxName)

  async function addBox(name: string, fields: Partial<Box> = {}): Promise<Box> {
    await mkdir(getHome(name), { recursive: true })
    const box = boxSchema.parse({ ...NEW_BOX, id: randomUUID(), hostname: name, ...fields })
    boxes.unshift(box)
    return box
  }
  const findBox = (nameOrId: string): Box => {
    const box = boxes.find((box) => box.id === nameOrId || box.hostname === nameOrId)
    if (box === undefined) throw new ApiError('not_found')
    return box
  }
  const filterBoxes = (query: string | undefined): Box[] => {
    const { live, box: text } = Object.fromEntries(new URLSearchParams(query))
    return boxes
      .filter(({ observedState }) => live === undefined || observedState !== 'terminated')
      .filter(({ id, hostname }) => text === undefined || hostname === text || id.startsWith(text))
  }
  /** Simulates the reconciler: sets the observed state to the desired state. */
  const applyDesiredState = (box: Box) => {
    const { desiredState } = box
    box.observedState = desiredState
  }

  const routes: [RegExp, Handler][] = [
    [
      /^GET \/api\/v1\/me(?:\?(.*))?$/,
      async (_, response, [, query]) =>
        sendJson(response, { ...ACCOUNT, boxes: filterBoxes(query), edge: { url } }),
    ],
    [
      /^GET \/api\/v1\/boxes(?:\?(.*))?$/,
      async (_, response, [, query]) => sendJson(response, { boxes: filterBoxes(query) }),
    ],
    [
      /^POST \/api\/v1\/boxes$/,
      async (request, response) => {
        const { name = 'plum', tier = 'lite' } = createBoxRequestSchema.parse(
          JSON.parse(await readText(request)),
        )
        if (boxes.some((box) => box.hostname === name && box.observedState !== 'terminated'))
          throw new ApiError('name_taken')
        sendJson(response, { box: await addBox(name, { tier, observedState: 'requested' }) }, 202)
      },
    ],
    [
      /^GET \/api\/v1\/boxes\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const box = findBox(id)
        sendJson(response, {
          ...BOX_DETAIL,
          box,
          state: { ...BOX_DETAIL.state, observed: box.observedState },
        })
        // After the response, so that a client reads the previous state once.
        applyDesiredState(box)
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/(wake|suspend)(\?stop=1)?$/,
      async (_, response, [, id = '', action, stop]) => {
        const box = findBox(id)
        if (action === 'wake' || stop) box.suspendedAs = null
        box.desiredState = action === 'wake' ? 'running' : 'suspended'
        sendJson(response, { box }, 202)
      },
    ],
    [
      /^DELETE \/api\/v1\/boxes\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const box = findBox(id)
        box.desiredState = box.observedState = 'terminated'
        sendJson(response, { box, operation: createOperation(box, 'pending') }, 202)
      },
    ],
    [
      /^GET \/api\/v1\/operations\/dop_(.+)$/,
      async (_, response, [, id = '']) =>
        sendJson(response, { operation: createOperation(findBox(id), 'completed') }),
    ],
    [
      /^POST \/v1\/box\/([^/]+)\/exec$/,
      async (request, response, [, name = '']) => {
        const { hostname } = findBox(name)
        const body = execRequestSchema.parse(JSON.parse(await readText(request)))
        const home = getHome(hostname)
        sendJson(
          response,
          body.attached ? attached.start(body, home) : await runLocally(body, home, response),
        )
      },
    ],
    [
      /^(GET|POST) \/v1\/box\/([^/]+)\/terminal\/sessions$/,
      async (request, response, [, method, name = '']) => {
        const { hostname } = findBox(name)
        if (method === 'GET') return sendJson(response, terminals.list())
        const body = terminalStartSchema.parse(JSON.parse(await readText(request)))
        sendJson(response, terminals.start(body, getHome(hostname)))
      },
    ],
    [
      /^DELETE \/v1\/box\/[^/]+\/terminal\/sessions\/(.+)$/,
      async (_, response, [, session = '']) => sendJson(response, terminals.kill(session)),
    ],
    [
      // Other ids: fake-processes.ts.
      /^DELETE \/v1\/box\/[^/]+\/exec\/(p_00000000[^/]+)$/,
      async (_, response, [, id = '']) => sendJson(response, attached.kill(id)),
    ],
  ]

  const server = createServer(async (request, response) => {
    const line = `${request.method} ${request.url}`
    requests.push({ line, headers: request.headers })
    const isEdge = line.includes(' /v1/')
    try {
      const index = oneTimeHandlers.findIndex(({ linePrefix }) => line.startsWith(linePrefix))
      if (index >= 0) return oneTimeHandlers.splice(index, 1)[0]?.handler(response, request)
      if (line === 'GET /') return sendJson(response, { name: 'boxwood', version: '9.9.9' })
      if (request.headers.authorization !== `Bearer ${KEY}`) throw new ApiError('unauthorized')
      for (const [pattern, handler] of routes) {
        const match = pattern.exec(line)
        if (match !== null) return await handler(request, response, [...match])
      }
      throw new ApiError('not_found')
    } catch (error) {
      const apiError = error instanceof ApiError ? error : new ApiError('internal_error', String(error))
      const body = isEdge ? edgeErrorBody(apiError) : controlErrorBody(apiError)
      if (!response.headersSent) sendJson(response, body, apiError.status)
    }
  })
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    requests.push({ line: `${request.method} ${request.url}`, headers: request.headers })
    const path = request.url?.replace(/^\/v1\/box\/[^/]+/, '') ?? ''
    attached.handleUpgrade(request, socket, head, path)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    attached.close()
    terminals.close()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    getHome,
    boxes,
    attached,
    terminals,
    requests,
    addBox,
    handleNext: (linePrefix, handler) => void oneTimeHandlers.push({ linePrefix, handler }),
    addRoutes: (addedRoutes) => void routes.push(...addedRoutes),
    async stopDuring(action) {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      attached.closeConnections()
      await closed
      await action()
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}

export function sendJson(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

/** In the future, so that the age of a box is always 0s. */
const CREATED_AT = '2030-01-01T00:00:00.000Z'

const NEW_BOX = {
  kind: 'managed',
  tier: 'lite',
  region: 'us-west-2',
  desiredRegion: null,
  desiredState: 'running',
  observedState: 'running',
  suspendedAs: null,
  autoPauseMin: null,
  pauseAt: null,
  autoSnapshotHours: null,
  autoSnapshotKeep: 1,
  environmentId: null,
  environmentVersionNo: null,
  envVars: [],
  restricted: false,
  image: null,
  imageDigest: null,
  ownerUserId: 'usr_1',
  quietHoursExempt: false,
  isolation: { level: 'bubblewrap', limits: [], network: 'own' },
  createdAt: CREATED_AT,
  updatedAt: CREATED_AT,
}

const BOX_DETAIL = {
  state: {
    desired: 'running',
    observed: 'running',
    connected: true,
    since: CREATED_AT,
    lastHeartbeatAt: CREATED_AT,
  },
  vitals: null,
  events: [
    {
      id: 'evt_1',
      fromState: 'provisioning',
      toState: 'running',
      // An escape sequence, which the box command must not send to the terminal.
      reason: 'agent\u001b[2J',
      actor: 'system',
      at: CREATED_AT,
    },
  ],
  job: null,
  pausesSurvived: 0,
  machine: null,
  environment: null,
  envVars: [{ name: 'TOKEN', value: 'secret-value' }],
  restricted: false,
}

const ACCOUNT = {
  user: { id: 'usr_1', email: null, name: 'owner', role: 'owner' },
  workspace: { id: 'ws_1', name: 'home' },
  billing: null,
  key: { id: 'key_1', kind: 'api', expiresAt: null, boxIds: null },
  box: null,
}

const createOperation = (box: Box, status: string) => ({
  id: `dop_${box.id}`,
  kind: 'box_delete',
  targetId: box.id,
  status,
  requestedAt: CREATED_AT,
  completedAt: null,
  error: null,
})
