// A fake coordinator for tests of the box command, over real HTTP. Box records are in memory, home directories on disk.
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { type Box, boxSchema, createBoxRequestSchema } from '../../shared/api/boxes.ts'
import { ApiError, controlErrorBody, edgeErrorBody } from '../../shared/errors.ts'

export const KEY = 'dcp_0123456789abcdef0123456789abcdef0123456789abcdef'

export type FakeCoordinator = {
  url: string
  boxes: Box[]
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
  const boxes: Box[] = []
  const requests: FakeCoordinator['requests'] = []
  const oneTimeHandlers: { linePrefix: string; handler: OneTimeHandler }[] = []

  async function addBox(name: string, fields: Partial<Box> = {}): Promise<Box> {
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
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  return {
    url,
    boxes,
    requests,
    addBox,
    handleNext: (linePrefix, handler) => void oneTimeHandlers.push({ linePrefix, handler }),
    addRoutes: (addedRoutes) => void routes.push(...addedRoutes),
    async stopDuring(action) {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
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
