// The coordinator buffers only a bounded part of what a host or a program sends while the other side does not read.

import { once } from 'node:events'
import { request as createRequest } from 'node:http'
import type { Writable } from 'node:stream'
import t from 'tap'
import { HOST, startBroker } from '../../../support/broker/start-broker.ts'
import { waitUntil } from '../../../support/wait-until.ts'

const MiB = 1024 * 1024
/** The buffers of the streams, and those of the kernel for two connections over loopback. */
const MAX_ACCEPTED = 32 * MiB
const TOTAL = 64 * MiB

/** Writes as much as is accepted. Returns the number of bytes that were accepted. */
function writeAll(target: Writable): { accepted: () => number } {
  let written = 0
  const chunk = Buffer.alloc(64 * 1024, 'x')
  function writeMore(): void {
    while (written < TOTAL) {
      written += chunk.length
      if (!target.write(chunk)) return void target.once('drain', writeMore)
    }
    target.end()
  }
  writeMore()
  return { accepted: () => written - target.writableLength }
}

/** Resolves when the number has not changed in several turns of the event loop. */
async function waitUntilStable(read: () => number): Promise<number> {
  let last = -1
  let equal = 0
  await waitUntil('no more bytes are accepted', () => {
    equal = read() === last ? equal + 1 : 0
    last = read()
    return equal >= 8
  })
  return last
}

t.test('a program that does not read stops the host', async (t) => {
  let accepted: () => number = () => 0
  const broker = await startBroker(t, {
    listener(_, response) {
      response.setHeader('Content-Length', TOTAL)
      ;({ accepted } = writeAll(response))
    },
  })
  const socket = await broker.connect()
  const outgoing = createRequest({ headers: { host: HOST }, createConnection: () => socket }).end()
  const [incoming] = await once(outgoing, 'response')
  const sent = await waitUntilStable(() => accepted())
  t.ok(sent < MAX_ACCEPTED, `accepted ${sent} bytes`)
  let received = 0
  for await (const chunk of incoming) received += chunk.length
  t.equal(received, TOTAL, 'all bytes arrive when the program reads')
})

t.test('a host that does not read stops the program', async (t) => {
  const { promise: read, resolve } = Promise.withResolvers<void>()
  const broker = await startBroker(t, {
    async listener(request, response) {
      request.pause()
      await read
      let received = 0
      for await (const chunk of request) received += chunk.length
      response.end(String(received))
    },
  })
  const socket = await broker.connect()
  const outgoing = createRequest({
    method: 'PUT',
    headers: { host: HOST, 'content-length': TOTAL },
    createConnection: () => socket,
  })
  const { accepted } = writeAll(outgoing)
  const sent = await waitUntilStable(accepted)
  t.ok(sent < MAX_ACCEPTED, `accepted ${sent} bytes`)
  resolve()
  const [incoming] = await once(outgoing, 'response')
  t.equal((await incoming.toArray()).join(''), String(TOTAL))
})
