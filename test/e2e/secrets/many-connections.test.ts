// A box holds 200 connections to a host of a secret while 1 GB streams through one of them: the memory of the coordinator stays
// bounded, and the box answers its other requests meanwhile.

import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import t, { type Test } from 'tap'
import { boxNode } from '../../support/box-node.ts'
import { createCertificate } from '../../support/certificate.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { requires } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from '../coordinator-with-box.ts'

const HOST = 'api.example.com'
const VALUE = 'value-of-the-secret-0123456789'
const CONNECTIONS = 200
const BYTES = 1_000_000_000
/** All connections have buffers in the coordinator. The stream is eight times as large. */
const MAX_GROWTH_BYTES = 128 * 1024 * 1024
const BLOCK = Buffer.alloc(256 * 1024, 'x')

/** Holds all responses open, except that of /large. */
async function startUpstream(t: Test) {
  const certificate = createCertificate(createTempDir(t, 'upstream'), HOST)
  const sockets = new Set<Socket>()
  const upstream = {
    port: 0,
    ca: certificate.ca,
    held: 0,
    credentials: new Set<string | undefined>(),
    sent: 0,
  }
  const server = createServer(certificate, async (request, response) => {
    upstream.credentials.add(request.headers.authorization)
    response.on('error', () => undefined)
    if (request.url !== '/large') {
      upstream.held += 1
      return void response.writeHead(200).write('held\n')
    }
    response.writeHead(200, { 'content-length': BYTES })
    for (let rest = BYTES; rest > 0; rest -= BLOCK.length) {
      upstream.sent = BYTES - rest
      if (!response.write(BLOCK.subarray(0, rest))) await once(response, 'drain')
    }
    response.end()
  })
  server.on('connection', (socket: Socket) => sockets.add(socket.on('error', () => undefined)))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  upstream.port = (server.address() as AddressInfo).port
  t.teardown(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return upstream
}

/** Writes to the files held and received. */
const PROGRAM = `
const fs = require("fs")
const headers = { authorization: process.env.TOKEN }
async function run() {
  const readers = await Promise.all(Array.from({ length: ${CONNECTIONS - 1} }, async () => {
    const reader = (await fetch("https://${HOST}/", { headers })).body.getReader()
    await reader.read()
    return reader
  }))
  fs.writeFileSync("held", String(readers.length))
  let bytes = 0
  for await (const block of (await fetch("https://${HOST}/large", { headers })).body) bytes += block.length
  fs.writeFileSync("received", String(bytes))
  setInterval(() => readers, 1000)
}
run().catch((error) => fs.writeFileSync("received", error.stack))`

t.test('200 connections and a stream of 1 GB', { skip: requires('openssl') }, async (t) => {
  const upstream = await startUpstream(t)
  const { api, boxRequest, exec, box } = await startCoordinatorWithBox(t, {
    secretBroker: {
      resolve: async () => ['127.0.0.1'],
      upstreamPort: upstream.port,
      upstreamCa: upstream.ca,
    },
    env: { ...limitsEnv(HIGH_EDGE_LIMITS), BOXWOOD_SECRETS_PRIVATE: '127.0.0.0/8' },
  })
  const secret = { name: 'TOKEN', value: VALUE, envName: 'TOKEN', hosts: [HOST] }
  t.match(await api('POST', `/boxes/${box.id}/secrets`, secret), { status: 201 })
  await waitUntil('the box can use its secrets', async () => {
    const { broker } = (await api('GET', `/boxes/${box.id}/secrets`)).json
    return broker.state === 'ready'
  })
  await exec('echo content >content')
  const before = process.memoryUsage()
  await exec(boxNode(PROGRAM), { detached: true })
  const readFile = async (name: string) => String((await exec(`cat ${name} 2>/dev/null || true`)).stdout)
  let answers = 0
  let [rss, arrayBuffers] = [0, 0]
  const received = await waitUntil(
    'the box has received the stream',
    async () => {
      const usage = process.memoryUsage()
      rss = Math.max(rss, usage.rss - before.rss)
      arrayBuffers = Math.max(arrayBuffers, usage.arrayBuffers - before.arrayBuffers)
      const isStreaming = upstream.sent > 0 && upstream.sent < BYTES - BLOCK.length
      const files = await boxRequest('GET', '/files?path=content')
      const command = await exec('echo answered')
      if (files.status !== 200 || command.stdout !== 'answered\n') throw new Error(`no answer: ${files.text}`)
      if (isStreaming) answers += 1
      return await readFile('received')
    },
    LONG_DEADLINE_MS,
  )
  t.equal(received, String(BYTES))
  t.equal(await readFile('held'), String(CONNECTIONS - 1))
  t.equal(upstream.held, CONNECTIONS - 1)
  t.same([...upstream.credentials], [VALUE])
  t.ok(answers > 0, `${answers} requests were answered during the stream`)
  t.comment(`memory has grown by ${rss >> 20} MiB, buffers by ${arrayBuffers >> 20} MiB`)
  t.ok(arrayBuffers < MAX_GROWTH_BYTES, `the buffers have grown by ${arrayBuffers} bytes`)
})
