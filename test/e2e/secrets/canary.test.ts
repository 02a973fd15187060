// The value of a secret is searched everywhere after all kinds of use and errors: only the encrypted columns of the database and the
// real host have it. A control value, which nothing hides, is found in each of these locations, so that the search can fail.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { backUp, restore } from '../../coordinator/server/backup/support.ts'
import { boxNode } from '../../support/box-node.ts'
import { createCertificate } from '../../support/certificate.ts'
import { findAgentPid, listBoxPids } from '../../support/find-agent-process.ts'
import { limitsEnv } from '../../support/limits-env.ts'
import { requires } from '../../support/requires.ts'
import { createTempDir } from '../../support/temp-dir.ts'
import { waitUntil } from '../../support/wait-until.ts'
import {
  type CoordinatorWithBox,
  HIGH_EDGE_LIMITS,
  startCoordinatorWithBox,
} from '../coordinator-with-box.ts'
import { waitForStatus } from '../snapshots-support.ts'
import { Search } from './find-text.ts'

const HOST = 'api.example.com'
/** In no certificate; and nothing listens there. */
const [UNTRUSTED, DOWN] = ['untrusted.example.org', 'down.example.com']

const newCore = () => `k${randomBytes(16).toString('hex')}`
/** JSON, HTML, shells and URLs encode the characters around the core. */
const withSpecialCharacters = (core: string) => `a "${core}\\ +/=%<&b`

const cores = { first: newCore(), rotated: newCore(), refused: newCore(), file: newCore() }
/** The name of a secret, which the coordinator shows, stores and logs like other names. */
const control = `CONTROL_${randomBytes(16).toString('hex').toUpperCase()}`

/** Sends back requests, and records them. */
async function startUpstream(t: Test) {
  const certificate = createCertificate(createTempDir(t, 'upstream'), HOST)
  const received: string[] = []
  const server = createServer(certificate, async (request, response) => {
    const body = (await request.toArray()).join('')
    received.push(JSON.stringify([request.url, request.headers, body]))
    const { authorization = '' } = request.headers
    if (request.url === '/redirect')
      response.setHeader('location', `https://${HOST}/?token=${encodeURIComponent(authorization)}`)
    response.setHeader('x-received', authorization)
    response.writeHead(request.url === '/redirect' ? 302 : 200).end(
      JSON.stringify({
        url: request.url,
        headers: request.headers,
        body,
        hex: Buffer.from(authorization).toString('hex'),
        base64: Buffer.from(`:${authorization}`).toString('base64'),
      }),
    )
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, request) => {
    received.push(JSON.stringify(request.headers))
    socket.send(JSON.stringify(request.headers))
  })
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => open.add(socket.on('error', () => undefined)))
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    sockets.close()
    server.close()
    for (const socket of open) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, ca: certificate.ca, received }
}

/** Keeps a connection and a WebSocket open, and what it has received in memory and in a file. */
const HOLDER = `
const seen = []
const headers = { authorization: process.env.TOKEN, "x-key": "key " + process.env.TOKEN }
const socket = new WebSocket("wss://${HOST}/socket", { headers })
socket.onmessage = ({ data }) => seen.push(data)
socket.onerror = ({ message }) => seen.push("error " + message)
async function run() {
  for (let n = 0; n < 3; n++) seen.push(await (await fetch("https://${HOST}/" + n, { headers })).text())
  while (seen.length < 4) await new Promise((resolve) => setTimeout(resolve, 20))
  require("fs").writeFileSync("seen", seen.join("\\n"))
  setInterval(() => undefined, 1000)
}
run().catch((error) => { require("fs").writeFileSync("seen", "failed " + error.stack) })`

/** Records the texts of all responses that the test receives. */
function recordResponses(t: Test): Promise<string>[] {
  const { fetch } = globalThis
  const texts: Promise<string>[] = []
  globalThis.fetch = async (...args) => {
    const response = await fetch(...args)
    texts.push(
      response
        .clone()
        .text()
        .then((text) => JSON.stringify([...response.headers]) + text),
    )
    return response
  }
  t.teardown(() => {
    globalThis.fetch = fetch
  })
  return texts
}

/** Creates the secrets, with each refusal of a value. Returns the id of the secret that the box has as TOKEN. */
async function createSecrets({ api, send, box }: CoordinatorWithBox): Promise<string> {
  const value = withSpecialCharacters(cores.first)
  const refused = withSpecialCharacters(cores.refused)
  const hosts = [HOST, UNTRUSTED, DOWN]
  const headers = { 'idempotency-key': 'create' }
  for (const body of [
    { name: 'REFUSED', value: `${refused}\u0007`, hosts },
    { name: 'REFUSED', value: refused, hosts: ['192.0.2.1'] },
    { name: 'lower', value: refused },
    { name: 'REFUSED', value: refused, unknown: refused },
    { name: 'REFUSED', value: { nested: refused } },
    { name: 'REFUSED', value: refused.repeat(2000) },
    { name: 'REFUSED', value: refused, grants: [{ boxId: 'box_unknown' }] },
  ])
    await api('POST', '/secrets', body, { headers: { 'idempotency-key': JSON.stringify(body).slice(0, 20) } })
  await send('POST', '/api/v1/secrets', `{"name": "REFUSED", "value": "${cores.refused}`, {
    headers: { 'content-type': 'application/json' },
  })
  const { json } = await api('POST', '/secrets', { name: control, value, hosts }, { headers })
  await api('POST', '/secrets', { name: control, value: refused, hosts })
  await api('POST', '/secrets', { name: control, value, hosts }, { headers })
  const { id } = json.secret
  await api('POST', `/boxes/${box.id}/secrets`, { secretId: id, envName: 'TOKEN' })
  await api('POST', `/boxes/${box.id}/secrets`, { secretId: id, envName: control })
  const form = { name: 'SECOND', value, hosts, envName: 'SECOND', in: ['query', 'path', 'body'] }
  await api('POST', `/boxes/${box.id}/secrets`, form)
  await api('POST', `/boxes/${box.id}/secrets`, { ...form, value: refused })
  await waitForBroker(api, box.id)
  return id
}

const waitForBroker = (api: CoordinatorWithBox['api'], boxId: string) =>
  waitUntil('the box can use its secrets', async () => {
    const { broker } = (await api('GET', `/boxes/${boxId}/secrets`)).json
    if (broker.state === 'failed') throw new Error(broker.message)
    return broker.state === 'ready'
  })

const CURL = 'curl --silent --show-error --max-time 20'
const USES = [
  `${CURL} -H "Authorization: Bearer $TOKEN" https://${HOST}/`,
  `${CURL} -v -u "user:$TOKEN" https://${HOST}/basic`,
  `${CURL} -i -H "Authorization: $TOKEN" https://${HOST}/redirect`,
  `${CURL} -L --max-redirs 1 -H "Authorization: $TOKEN" https://${HOST}/redirect`,
  `${CURL} --data "token=$TOKEN" "https://${HOST}/?token=$TOKEN"`,
  `${CURL} --data "token=$SECOND" "https://${HOST}/$SECOND/x?token=$SECOND"`,
  `${CURL} --json "{\\"token\\": \\"$SECOND\\"}" https://${HOST}/`,
  `${CURL} -H "Authorization: $SECOND" https://${HOST}/`,
  `${CURL} --compressed -H "X-Api-Key: $TOKEN" -H "User-Agent: $TOKEN" https://${HOST}/`,
  `${CURL} -H "Authorization: $TOKEN" https://${UNTRUSTED}/`,
  `${CURL} -H "Authorization: $TOKEN" https://${DOWN}/`,
  `${CURL} -H "Authorization: $TOKEN" -H "Host: other.example.com" https://${HOST}/`,
  `${CURL} -H "Authorization: $TOKEN" https://refused.example.net/`,
  `${CURL} -k -H "Authorization: $TOKEN" https://${HOST}/`,
]

/** The files that have changed since then, in the view of the box. */
async function searchBoxFiles(search: Search, { exec, box }: CoordinatorWithBox, since: number) {
  const { stdout } = await exec(
    `find / \\( -path /proc -o -path /sys \\) -prune -o -newerct @${Math.floor(since / 1000)} -type f -readable -print 2>/dev/null`,
  )
  for (const path of String(stdout).trim().split('\n'))
    search.addFile('files in the view of the box', `/proc/${findAgentPid(box.id)}/root${path}`)
}

async function searchDatabase(search: Search, { instance }: CoordinatorWithBox): Promise<void> {
  const { db } = instance.context
  for (const { name } of await db.introspection.getTables())
    for (const row of await db
      .selectFrom(name as 'boxes')
      .selectAll()
      .execute())
      for (const value of Object.values(row)) {
        const content =
          (value as unknown) instanceof Uint8Array ? (value as unknown as Uint8Array) : String(value)
        search.add(`table ${name}`, content, `table ${name}`)
        search.add('database', content, `table ${name}`)
      }
}

t.test('the value of a secret is only where it must be', { skip: requires('openssl', 'curl') }, async (t) => {
  const upstream = await startUpstream(t)
  const startedAt = Date.now()
  const responses = recordResponses(t)
  const logLines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void logLines.push(line) })
  const coordinator = await startCoordinatorWithBox(t, {
    log,
    secretBroker: {
      resolve: async (host) => [host === DOWN ? '127.0.0.2' : '127.0.0.1'],
      upstreamPort: upstream.port,
      upstreamCa: upstream.ca,
    },
    env: {
      ...limitsEnv(HIGH_EDGE_LIMITS),
      BOXWOOD_SECRETS_PRIVATE: '127.0.0.0/8',
      BOXWOOD_AGENT_LOG: 'trace',
    },
  })
  const { api, exec, box, dataDir } = coordinator

  const file = { path: '~/secret-file', content: withSpecialCharacters(cores.file) }
  const environment = (await api('POST', '/environments', { name: 'canary', files: [file] })).json.environment
  await api('PUT', `/environments/${environment.id}/files`, { ...file, mode: '0400' })
  const secretId = await createSecrets(coordinator)
  await exec(`echo ${control} >control && env >variables`)
  const usePlaceholders = async () => {
    for (const command of USES) await exec(command)
  }
  await usePlaceholders()
  await exec(boxNode(HOLDER), { detached: true })
  const seen = await waitUntil('a program of the box has received the answers', async () => {
    const text = String((await exec('cat seen 2>/dev/null || true')).stdout)
    return text !== '' && text
  })
  t.notMatch(seen, /^(failed|error)/m)
  const received = upstream.received.join('\n')
  const value = withSpecialCharacters(cores.first)
  for (const [name, text] of Object.entries({
    header: JSON.stringify(`Bearer ${value}`),
    path: `"/a%20%22${cores.first}`,
    query: `?token=a%20%22${cores.first}`,
    form: `"token=a+%22${cores.first}`,
    JSON: JSON.stringify(`{"token": ${JSON.stringify(value)}}`),
  }))
    t.ok(received.includes(text), `the real host receives the value: ${name}`)
  await exec(`printenv TOKEN >placeholder && ${USES[0]} >answer && sleep 0`)
  await api('PATCH', `/secrets/${secretId}`, { value: withSpecialCharacters(cores.rotated) })
  await api('PATCH', `/secrets/${secretId}`, { value: cores.refused, hosts: ['*.com'] })
  await usePlaceholders()
  t.ok(upstream.received.join('\n').includes(cores.rotated), 'the real host receives the new value')
  const snapshot = { boxId: box.id, name: control }
  const { json } = await api('POST', '/snapshots', snapshot, { headers: { 'idempotency-key': 'snapshot' } })
  await waitForStatus(coordinator, json.snapshot.id, 'available')

  const search = new Search({ ...cores, control, box: box.id })
  const pids = listBoxPids(box.id)
  for (const pid of pids) {
    search.addMemory('memory of the box', pid)
    search.addFile('environment of the processes of the box', `/proc/${pid}/environ`)
  }
  await searchBoxFiles(search, coordinator, startedAt)
  const backup = await backUp(t, dataDir)
  search.addFile('backup', backup)
  search.addDirectory('backup', await restore(t, backup))

  await api('POST', `/secrets/${secretId}/grants`, { boxId: box.id })
  await api(
    'DELETE',
    `/boxes/${box.id}/secrets/${(await api('GET', `/boxes/${box.id}/secrets`)).json.mounts[0].id}`,
  )
  await usePlaceholders()
  await searchDatabase(search, coordinator)
  search.addDirectory('data directory', dataDir)
  search.addDirectory('archives', join(dataDir, 'archives'))
  for (const name of ['boxwood.db', 'boxwood.db-wal'])
    search.addFile('files of the database', join(dataDir, name))
  search.addFile('log of the agent', join(dataDir, 'boxes', box.id, 'log'))
  search.add('log of the coordinator', logLines.join(''))
  for (const response of await Promise.all(responses)) search.add('responses of the API', response)
  await api('DELETE', `/secrets/${secretId}`)
  await searchDatabase(search, coordinator)

  for (const name of Object.keys(cores)) t.same(search.describe(name), [], `the value "${name}" is nowhere`)
  for (const [location, value] of [
    ['memory of the box', 'control'],
    ['environment of the processes of the box', 'control'],
    ['files in the view of the box', 'control'],
    ['backup', 'control'],
    ['archives', 'control'],
    ['data directory', 'control'],
    ['files of the database', 'control'],
    ['responses of the API', 'control'],
    ['table audit_log', 'control'],
    ['table idempotency_keys', 'control'],
    ['table secrets', 'control'],
    // Each line of the agent has the id of the box.
    ['log of the agent', 'box'],
    ['log of the coordinator', 'box'],
  ] as const)
    t.ok(search.list(location).includes(value), `the search finds values in: ${location}`)
  const agentLog = readFileSync(join(dataDir, 'boxes', box.id, 'log'), 'utf8')
  for (const text of [agentLog, logLines.join('')]) t.match(text, /"level":20,/, 'the log has details')
})
