// A server on a box for tests of its ports, and a client of GET /ports/{port}.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { WebSocket } from 'ws'
import type { CoordinatorWithBox } from '../e2e/coordinator-with-box.ts'
import { boxNode } from './box-node.ts'
import { waitUntil } from './wait-until.ts'

/** The server responds with the request in upper case after the FIN of the client. Its first line of output is its port. */
const SERVER = `
  const { createServer } = require("node:net")
  createServer({ allowHalfOpen: true }, (socket) => {
    let text = ""
    socket.on("error", () => undefined)
    socket.write("hello ")
    socket.on("data", (data) => {
      text += data
      if (text === "echo") socket.write("now ")
    })
    socket.on("end", () => socket.end(text.toUpperCase()))
  }).listen(0, "127.0.0.1", function () { console.log(this.address().port) })`

/** Returns the port. */
export async function startPortServer(
  t: Test,
  { boxRequest }: Pick<CoordinatorWithBox, 'boxRequest'>,
): Promise<number> {
  const { json } = await boxRequest('POST', '/exec', { command: boxNode(SERVER), detached: true })
  t.teardown(() => boxRequest('DELETE', `/exec/${json.processId}`))
  return waitUntil('the server listens', async () => {
    const status = await boxRequest('GET', `/exec/${json.processId}`)
    return Number(status.json.stdout)
  })
}

type Refusal = { status: number; code: string; message: string }

/** `ws` is paused. `refusal` is null when the connection is open. */
export async function connectToPort(
  t: Test,
  { url, key, name, port }: { url: string; key: string; name: string; port: number | string },
) {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/v1/box/${name}/ports/${port}`, {
    headers: { authorization: `Bearer ${key}` },
    perMessageDeflate: false,
  })
  t.teardown(() => ws.terminate())
  ws.on('error', () => undefined)
  const refused = once(ws, 'unexpected-response').then(async ([, response]): Promise<Refusal> => {
    const { error } = JSON.parse(await text(response as IncomingMessage))
    return { status: (response as IncomingMessage).statusCode ?? 0, ...error }
  })
  refused.catch(() => undefined)
  // A message may arrive together with the handshake.
  ws.once('open', () => ws.pause())
  const refusal = await Promise.race([once(ws, 'open').then(() => null), refused])
  return { ws, refusal }
}
