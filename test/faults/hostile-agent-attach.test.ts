// A hostile agent responds to requests for attached connections: every response is bounded and becomes an error.

import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { BOX_HEADER, DIAL_BACK_HEADER, SOCKET_PATH_PREFIX } from '../../shared/protocol.ts'
import { connectAttachClient, RefusedError } from '../support/attach-client.ts'
import { type FleetBox, startFleet } from '../support/fleet.ts'
import { connectHostileAgent, isReportRequest } from '../support/hostile-agent.ts'
import { HOSTILE_RESPONSES, type HostileResponse } from '../support/hostile-responses.ts'
import { limitsEnv } from '../support/limits-env.ts'

const ID = 'p_0123456789abcdef01234567'
/** The coordinator exits when its heap exceeds this. */
const HEAP_MIB = 96

const { fleet, coordinator, stop } = await startFleet(1, {
  execArgv: [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=1'],
  settings: limitsEnv({ edgeRequestsPerSecond: 100_000, edgeAttachments: 1000 }),
})
t.after(stop)
const [box] = fleet.boxes as [FleetBox]
const { url, key } = fleet
let respond: HostileResponse = () => undefined
let tunnel: WebSocket | undefined
t.after(() => tunnel?.terminate())

/** Connects a client, after the agent has reconnected if its last response has closed the tunnel. */
async function connect() {
  if (tunnel?.readyState !== WebSocket.OPEN)
    tunnel = await connectHostileAgent(url, box, (request) => {
      if (!isReportRequest(request)) respond(request, { url, box })
    })
  return connectAttachClient(`${url}/v1/box/${box.boxId}/exec/${ID}/attach`, {
    authorization: `Bearer ${key}`,
  })
}

/** Accepts the request, opens the dial-back connection and sends messages on it. */
const socketOf =
  (send: (socket: WebSocket) => void): HostileResponse =>
  (request) => {
    const id = request.headers[DIAL_BACK_HEADER]
    request.respond(200)
    const socket = new WebSocket(url.replace('http', 'ws') + SOCKET_PATH_PREFIX + id, {
      headers: { authorization: `Bearer ${box.token}`, [BOX_HEADER]: box.boxId },
    })
    socket.on('error', () => undefined)
    t.after(() => socket.terminate())
    socket.once('open', () => send(socket))
  }

t.test('responses that are not errors and open no connection, or the wrong one', async (t) => {
  for (const [name, response] of Object.entries(HOSTILE_RESPONSES)) {
    respond = response
    // Some responses never end: the client stops retrying.
    const result = await Promise.race([
      connect().then(
        () => 'accepted',
        (error: unknown) => (error instanceof RefusedError ? error.status : String(error)),
      ),
      new Promise<'no response'>((resolve) => setTimeout(() => resolve('no response'), 150)),
    ])
    t.not(result, 'accepted', `${name}: ${result}`)
    t.ok(result === 'no response' || Number(result) >= 400, `${name}: ${result}`)
  }
})

t.test('messages that violate the protocol', async (t) => {
  const attacks: Record<string, (socket: WebSocket) => void> = {
    'random bytes': (socket) => socket.send(Buffer.from('random')),
    'an unknown message': (socket) => socket.send('{"type":"unknown"}'),
    'a message that is too large': (socket) => socket.send(Buffer.alloc(1024 * 1024, 1)),
    'a disconnect': (socket) => socket.terminate(),
  }
  for (const [name, attack] of Object.entries(attacks)) {
    respond = socketOf(attack)
    const client = await connect()
    await client.closed
    t.match(client.find('error'), { code: /^(exec_failed|box_unreachable)$/ }, name)
  }
})

t.test('a flood of output that the client does not read', async (t) => {
  const chunk = Buffer.alloc(65_537, 1)
  let hostile: WebSocket | undefined
  respond = socketOf((socket) => {
    hostile = socket
    for (let i = 0; i < 3000; i++) socket.send(chunk)
  })
  const client = await connect()
  client.ws.pause()
  await new Promise((resolve) => setTimeout(resolve, 500))
  t.ok((hostile?.bufferedAmount ?? 0) > 100 * 1024 * 1024, 'the coordinator has stopped reading')
  t.equal(coordinator.exitCode, null, 'the coordinator runs')
  client.cut()
  if (hostile !== undefined) await once(hostile, 'close')
  const response = await fetch(`${url}/api/v1/me`, { headers: { authorization: `Bearer ${key}` } })
  t.equal(response.status, 200)
})

// The child process keeps the event loop alive.
t.end()
