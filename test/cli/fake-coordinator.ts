// A coordinator as the box command sees one, over real HTTP: boxes in memory, each a folder and a shell here.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname, join, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Test } from 'tap'
import { type Box, box as boxSchema, createBox } from '../../shared/api/boxes.ts'
import { execRequest } from '../../shared/api/exec.ts'
import { ApiError, controlErrorBody, edgeErrorBody } from '../../shared/errors.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { runHere } from './fake-exec.ts'

export const KEY = 'dcp_0123456789abcdef0123456789abcdef0123456789abcdef'

export type FakeCoordinator = {
  url: string
  /** The home directory of a box. */
  home(name: string): string
  boxes: Box[]
  /** `METHOD /path` with the headers, as they came. */
  requests: { line: string; headers: IncomingMessage['headers'] }[]
  /** Answers the next requests whose line begins so in place of the real answer, in this order. */
  answerNext(line: string, answer: (response: ServerResponse, request: IncomingMessage) => void): void
  addBox(name: string): Promise<Box>
  /** More routes, as regular expressions of `METHOD /path`. */
  serve(routes: [RegExp, Handler][]): void
  /** Nothing listens until the promise settles that `meanwhile` returns. */
  down(meanwhile: () => Promise<void>): Promise<void>
}

export type Handler = (request: IncomingMessage, response: ServerResponse, match: string[]) => Promise<void>

export async function startFakeCoordinator(t: Test): Promise<FakeCoordinator> {
  const homes = tempFolder(t, 'homes')
  const boxes: Box[] = []
  const requests: FakeCoordinator['requests'] = []
  const planned: [string, (response: ServerResponse, request: IncomingMessage) => void][] = []
  const home = (name: string) => join(homes, name)

  async function addBox(name: string, fields: Partial<Box> = {}): Promise<Box> {
    await mkdir(home(name))
    const box = boxSchema.parse({ ...NEW_BOX, id: randomUUID(), hostname: name, ...fields })
    boxes.unshift(box)
    return box
  }
  const find = (name: string): Box => {
    const box = boxes.find((box) => box.id === name || box.hostname === name)
    if (box === undefined) throw new ApiError('not_found')
    return box
  }
  /** What was asked for comes true at the next look. */
  const settle = (box: Box) => {
    const next = box.desiredState
    box.observedState = next
  }

  const routes: [RegExp, Handler][] = [
    [/^GET \/api\/v1\/me$/, async (_, response) => json(response, { ...ACCOUNT, boxes, edge: { url } })],
    [
      /^GET \/api\/v1\/boxes(\?live=1)?$/,
      async (_, response, [, live]) =>
        json(response, { boxes: boxes.filter((box) => !live || box.observedState !== 'terminated') }),
    ],
    [
      /^POST \/api\/v1\/boxes$/,
      async (request, response) => {
        const { name = 'plum', tier = 'lite' } = createBox.parse(JSON.parse(await text(request)))
        if (boxes.some((box) => box.hostname === name)) throw new ApiError('name_taken')
        json(response, { box: await addBox(name, { tier, observedState: 'requested' }) }, 202)
      },
    ],
    [
      /^GET \/api\/v1\/boxes\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const box = find(id)
        json(response, { ...DETAIL, box, state: { ...DETAIL.state, observed: box.observedState } })
        settle(box)
      },
    ],
    [
      /^POST \/api\/v1\/boxes\/([^/]+)\/(wake|suspend)$/,
      async (_, response, [, id = '', verb]) => {
        const box = find(id)
        box.desiredState = verb === 'wake' ? 'running' : 'suspended'
        json(response, { box }, 202)
      },
    ],
    [
      /^DELETE \/api\/v1\/boxes\/([^/]+)$/,
      async (_, response, [, id = '']) => {
        const box = find(id)
        box.desiredState = box.observedState = 'terminated'
        json(response, { box, operation: operationOf(box, 'pending') }, 202)
      },
    ],
    [
      /^GET \/api\/v1\/operations\/dop_(.+)$/,
      async (_, response, [, id = '']) => json(response, { operation: operationOf(find(id), 'completed') }),
    ],
    [
      /^POST \/v1\/box\/([^/]+)\/exec$/,
      async (request, response, [, name = '']) => {
        const { hostname } = find(name)
        json(
          response,
          await runHere(execRequest.parse(JSON.parse(await text(request))), home(hostname), response),
        )
      },
    ],
    [
      /^PUT \/v1\/box\/([^/]+)\/upload\?(.*)$/,
      async (request, response, [, name = '', query]) => {
        const { path, mode } = Object.fromEntries(new URLSearchParams(query))
        const real = resolve(home(find(name).hostname), path ?? '')
        if ((await stat(real).catch(() => null))?.isDirectory()) throw new ApiError('invalid_path')
        if (!(await stat(dirname(real)).catch(() => null))) throw new ApiError('not_found', 'No such folder.')
        await pipeline(request, createWriteStream(real, { mode: Number.parseInt(mode ?? '644', 8) }))
        json(response, { ok: true, type: 'file.uploaded', path: real, size: (await stat(real)).size })
      },
    ],
    [
      /^GET \/v1\/box\/([^/]+)\/download\?(.*)$/,
      async (_, response, [, name = '', query]) => {
        const path = new URLSearchParams(query).get('path')?.replace(/^~\/?/, '') ?? ''
        const real = resolve(home(find(name).hostname), path)
        const facts = await stat(real).catch(() => null)
        if (facts === null) throw new ApiError('not_found', `${path}: no such file or directory.`)
        response.setHeader('x-service-path', encodeURI(real))
        if (facts.isDirectory()) {
          response.setHeader('x-service-content', 'directory')
          const tar = spawn('tar', ['-C', dirname(real), '-c', basename(real)])
          await pipeline(tar.stdout, response)
        } else {
          response.setHeader('content-length', facts.size)
          await pipeline(createReadStream(real), response)
        }
      },
    ],
  ]

  const server = createServer(async (request, response) => {
    const line = `${request.method} ${request.url}`
    requests.push({ line, headers: request.headers })
    const isEdge = line.includes(' /v1/')
    try {
      const plan = planned.findIndex(([begin]) => line.startsWith(begin))
      if (plan >= 0) return planned.splice(plan, 1)[0]?.[1](response, request)
      if (request.headers.authorization !== `Bearer ${KEY}`) throw new ApiError('unauthorized')
      for (const [pattern, handler] of routes) {
        const match = pattern.exec(line)
        if (match !== null) return await handler(request, response, [...match])
      }
      throw new ApiError('not_found')
    } catch (error) {
      const refusal = error instanceof ApiError ? error : new ApiError('internal_error', String(error))
      if (!response.headersSent)
        json(response, isEdge ? edgeErrorBody(refusal) : controlErrorBody(refusal), refusal.status)
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
    home,
    boxes,
    requests,
    addBox,
    answerNext: (line, answer) => void planned.push([line, answer]),
    serve: (more) => void routes.push(...more),
    async down(meanwhile) {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
      await meanwhile()
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const NOW = '2030-01-01T00:00:00.000Z'

const NEW_BOX = {
  tier: 'lite',
  region: 'us-west-2',
  desiredRegion: null,
  desiredState: 'running',
  observedState: 'running',
  autoPauseMin: null,
  pauseAt: null,
  autoSnapshotHours: null,
  autoSnapshotKeep: 1,
  environmentId: null,
  environmentVersionNo: null,
  envVars: [],
  restricted: false,
  ownerUserId: 'usr_1',
  quietHoursExempt: false,
  isolation: { level: 'bubblewrap', limits: [] },
  createdAt: NOW,
  updatedAt: NOW,
}

const DETAIL = {
  state: { desired: 'running', observed: 'running', connected: true, since: NOW, lastHeartbeatAt: NOW },
  vitals: null,
  events: [
    {
      id: 'evt_1',
      fromState: 'provisioning',
      toState: 'running',
      reason: 'agent\u001b[2J',
      actor: 'system',
      at: NOW,
    },
  ],
  job: null,
  pausesSurvived: 0,
  environment: null,
  envVars: [{ name: 'TOKEN', value: 'hush' }],
  restricted: false,
}

const ACCOUNT = {
  user: { email: null, name: 'owner', role: 'owner' },
  workspace: { id: 'ws_1', name: 'home' },
  billing: null,
  key: { id: 'key_1', kind: 'api', expiresAt: null, boxIds: null },
  box: null,
}

const operationOf = (box: Box, status: string) => ({
  id: `dop_${box.id}`,
  kind: 'box_delete',
  targetId: box.id,
  status,
  requestedAt: NOW,
  completedAt: null,
  error: null,
})
