// A hostile agent responds to requests for terminals: every response is bounded and becomes an error.

import t from 'tap'
import { WebSocket } from 'ws'
import { BOX_HEADER, DIAL_BACK_HEADER, SOCKET_PATH_PREFIX } from '../../shared/protocol.ts'
import { connectAttachClient, RefusedError } from '../support/attach-client.ts'
import { type FleetBox, startFleet } from '../support/fleet.ts'
import { connectHostileAgent, isReportRequest } from '../support/hostile-agent.ts'
import { HOSTILE_RESPONSES, type HostileResponse } from '../support/hostile-responses.ts'
import { limitsEnv } from '../support/limits-env.ts'

const { fleet, stop } = await startFleet(1, {
  settings: limitsEnv({ edgeRequestsPerSecond: 100_000, edgeAttachments: 1000 }),
})
t.after(stop)
const [box] = fleet.boxes as [FleetBox]
const { url, key } = fleet
let respond: HostileResponse = () => undefined
let tunnel: WebSocket | undefined
t.after(() => tunnel?.terminate())

/** Connects the agent again if its last response has closed the tunnel. */
async function connectAgent() {
  if (tunnel?.readyState !== WebSocket.OPEN)
    tunnel = await connectHostileAgent(url, box, (request) => {
      if (!isReportRequest(request)) respond(request, { url, box })
    })
}

async function connect(query: string) {
  await connectAgent()
  return connectAttachClient(`${url}/v1/box/${box.boxId}/terminal?${query}`, {
    authorization: `Bearer ${key}`,
  })
}

const errorOf = (code: string) => JSON.stringify({ ok: false, error: { code, message: code } })

t.test('responses that open no connection, or the wrong one', async (t) => {
  for (const [name, response] of Object.entries(HOSTILE_RESPONSES)) {
    for (const query of ['session=a', 'create=never', '']) {
      respond = response
      await connectAgent()
      // Some responses never end.
      const result = await Promise.race([
        connect(query).then(
          () => 'accepted',
          (error: unknown) => (error instanceof RefusedError ? error.status : String(error)),
        ),
        new Promise<'no response'>((resolve) => setTimeout(() => resolve('no response'), 100)),
      ])
      if (result !== 'no response' && !(Number(result) >= 400)) t.fail(`${name}: ${query} → ${result}`)
    }
  }
})

t.test('a session that neither exists nor can be started takes a bounded number of requests', async (t) => {
  for (const code of ['not_found', 'invalid_request', 'exec_failed']) {
    let requests = 0
    respond = (request) => {
      requests++
      const isStart = request.method === 'POST'
      request.respond(400, errorOf(isStart ? code : 'not_found'))
    }
    await t.rejects(connect('session=a'), /refused with status/)
    t.ok(requests <= 3, `${code}: ${requests} requests`)
  }
})

t.test('a response for another session or command', async (t) => {
  const started = {
    ...{ ok: true, type: 'terminal.started', session: 'other', pid: 1, command: null, cols: 80, rows: 24 },
    ...{ clients: 0, startedAt: '2026-01-01T00:00:00Z', lastActiveAt: '2026-01-01T00:00:00Z' },
  }
  const responses = [started, { ...started, session: 'a', commandId: `p_${'0'.repeat(24)}` }]
  for (const body of responses) {
    respond = (request) =>
      request.method === 'POST'
        ? request.respond(200, JSON.stringify(body))
        : request.respond(404, errorOf('not_found'))
    await t.rejects(connect('session=a'), /status 502: .*exec_failed/)
  }
})

t.test('messages that violate the protocol close the connection with an error', async (t) => {
  const messages: Record<string, string | Buffer> = {
    'a screen out of bounds':
      '{"type":"screen","bytes":1e12,"stdoutOffset":0,"stderrOffset":0,"cols":80,"rows":24}',
    'a negative offset': '{"type":"stdin","offset":-1}',
    'a size out of bounds': '{"type":"resized","cols":0,"rows":24}',
    'a name with control characters':
      '{"type":"attached","session":"a\\u001b","stdinOffset":0,"stdoutOffset":0,"stderrOffset":0}',
    'input of the client': Buffer.from([0, 65]),
  }
  for (const [name, message] of Object.entries(messages)) {
    respond = (request) => {
      const id = request.headers[DIAL_BACK_HEADER]
      request.respond(200)
      const socket = new WebSocket(url.replace('http', 'ws') + SOCKET_PATH_PREFIX + id, {
        headers: { authorization: `Bearer ${box.token}`, [BOX_HEADER]: box.boxId },
      })
      socket.on('error', () => undefined)
      t.after(() => socket.terminate())
      socket.once('open', () => socket.send(message))
    }
    const client = await connect('session=a')
    await client.closed
    t.match(client.messages, [{ type: 'error', code: 'exec_failed' }], name)
  }
})

// The child process keeps the event loop alive.
t.end()
