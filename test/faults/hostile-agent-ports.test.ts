// A hostile agent responds to connections to ports: every response is bounded, and the coordinator survives.

import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { BOX_HEADER, DIAL_BACK_HEADER, SOCKET_PATH_PREFIX } from '../../shared/protocol.ts'
import { type FleetBox, startFleet } from '../support/fleet.ts'
import { connectHostileAgent, isReportRequest } from '../support/hostile-agent.ts'
import type { HostileResponse } from '../support/hostile-responses.ts'
import { limitsEnv } from '../support/limits-env.ts'
import { connectToPort } from '../support/port-client.ts'
import { waitUntil } from '../support/wait-until.ts'

/** The coordinator exits when its heap exceeds this. */
const HEAP_MIB = 96

const { fleet, coordinator, stop } = await startFleet(1, {
  execArgv: [`--max-old-space-size=${HEAP_MIB}`, '--max-semi-space-size=1'],
  settings: limitsEnv({ edgeRequestsPerSecond: 100_000 }),
})
t.after(stop)
const [box] = fleet.boxes as [FleetBox]
const { url, key } = fleet
let respond: HostileResponse = () => undefined
let tunnel: WebSocket | undefined
t.after(() => tunnel?.terminate())

/** Connects a client, after the agent has reconnected if its last response has closed the tunnel. */
async function connect(t: Test) {
  if (tunnel?.readyState !== WebSocket.OPEN)
    tunnel = await connectHostileAgent(url, box, (request) => {
      if (!isReportRequest(request)) respond(request, { url, box })
    })
  return connectToPort(t, { url, key, name: box.boxId, port: 3000 })
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

const ATTACKS: Record<string, (socket: WebSocket) => void> = {
  'a text message': (socket) => socket.send('text'),
  'a message that is too large': (socket) => socket.send(Buffer.alloc(1024 * 1024, 1)),
  'bytes after the FIN': (socket) => {
    socket.send(Buffer.alloc(0))
    socket.send(Buffer.from('x'))
  },
  'many pings': (socket) => {
    for (let count = 0; count < 1000; count++) socket.ping()
  },
  'a disconnect': (socket) => socket.terminate(),
}

for (const [name, attack] of Object.entries(ATTACKS))
  t.test(`${name} resets the connection of the client`, async (t) => {
    respond = socketOf(attack)
    const { ws, refusal } = await connect(t)
    t.equal(refusal, null)
    ws.resume()
    if (ws.readyState !== ws.CLOSED) await once(ws, 'close')
    t.equal((await fetch(`${url}/healthz`)).status, 200)
  })

t.test('a flood that the client does not read waits at the agent', async (t) => {
  const total = 100 * 1024 * 1024
  let sent = 0
  respond = socketOf((socket) => {
    const chunk = Buffer.alloc(64 * 1024)
    const sendNext = () =>
      socket.send(chunk, (error) => {
        if (error) return
        sent += chunk.length
        if (sent < total) sendNext()
      })
    sendNext()
  })
  const { refusal } = await connect(t)
  t.equal(refusal, null)
  // The client is paused.
  let last = -1
  let samePolls = 0
  await waitUntil('the agent has to wait, or has sent everything', () => {
    samePolls = sent === last ? samePolls + 1 : 0
    last = sent
    return samePolls > 20 || sent >= total
  })
  t.ok(sent < total / 2, `${sent} bytes are buffered`)
  t.equal((await fetch(`${url}/healthz`)).status, 200)
  t.equal(coordinator.exitCode, null)
})

// The child process keeps the event loop alive.
t.end()
