// What is revoked through one replica ends the streams on another one: keys, links to ports, secrets of a box, and members.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { systemClock } from '../../../shared/clock.ts'
import { openStream } from '../../e2e/edge-stream-reader.ts'
import { boxNode } from '../box-node.ts'
import type { LoadBox } from '../chaos/replica-load.ts'
import { bySessionOf } from '../cookies.ts'
import { connectFeed } from '../feed-client.ts'
import { createTestSession } from '../session.ts'
import { waitUntil } from '../wait-until.ts'
import { findActorByKey } from '../workspace.ts'
import { summarizeTimes } from './figures.ts'
import type { NamespaceFleet, NamespaceReplica } from './fleet.ts'
import { SECRET_HOST, type SecretHost } from './secret-host.ts'

const APP = `
  require("node:http").createServer((request, response) => response.write("begin")).listen(0, "127.0.0.1", function () {
    console.log(this.address().port)
  })`

const fetchProgram = (path: string) =>
  boxNode(`fetch("https://${SECRET_HOST}${path}", { headers: { authorization: process.env.TOKEN } })
    .then(({ body }) => Array.fromAsync(body)).catch(() => undefined)`)

/** Something that is open at a replica, and what revokes it through another one. */
type Open = { closed: Promise<unknown>; revoke(): Promise<unknown> }
type Pair = { at: NamespaceReplica; through: NamespaceReplica; number: number }
type Kind = (t: Test, pair: Pair) => Promise<Open>

export type RevocationOptions = { secretHost: SecretHost; count: number }

/** Returns the times from the request that revokes to the end of the stream, and from its response, in milliseconds. */
export async function runRevocationRound(
  t: Test,
  fleet: NamespaceFleet,
  { secretHost, count }: RevocationOptions,
) {
  const kinds = await prepareKinds(fleet, secretHost)
  const figures: Record<string, object> = {}
  const all: number[] = []
  for (const [name, open] of Object.entries(kinds)) {
    const times: number[] = []
    const afterResponse: number[] = []
    // One subtest for each: its connections are closed at its end.
    await t.test(name, async (t) => {
      for (let number = 0; times.length < count / Object.keys(kinds).length; number++) {
        const { closed, revoke } = await open(t, { ...choosePair(fleet, number), number })
        const startedAt = performance.now()
        const ended = closed.then(() => performance.now())
        await revoke()
        const respondedAt = performance.now()
        const closedAt = await ended
        times.push(closedAt - startedAt)
        afterResponse.push(Math.max(0, closedAt - respondedAt))
      }
      t.pass(`${times.length} streams have ended`)
    })
    all.push(...times)
    figures[name] = { ...summarizeTimes(times), afterResponse: summarizeTimes(afterResponse) }
  }
  return { all: summarizeTimes(all), ...figures }
}

/** All pairs of two replicas, in turn. */
function choosePair({ replicas }: NamespaceFleet, number: number): Omit<Pair, 'number'> {
  const at = number % replicas.length
  const step = 1 + (Math.floor(number / replicas.length) % (replicas.length - 1))
  return {
    at: replicas[at] as NamespaceReplica,
    through: replicas[(at + step) % replicas.length] as NamespaceReplica,
  }
}

async function prepareKinds(fleet: NamespaceFleet, secretHost: SecretHost): Promise<Record<string, Kind>> {
  const { boxes } = fleet
  const pick = (number: number) => boxes[number % boxes.length] as LoadBox
  const owner = await findActorByKey(fleet.db, fleet.authHeaders().authorization.replace('Bearer ', ''))
  const session = await signIn(fleet)
  const start = async (box: LoadBox, command: string): Promise<string> =>
    (await sendJson(fleet, fleet.replicas[0], 'POST', `/v1/box/${box.id}/exec`, { command, detached: true }))
      .processId
  const printing = await Promise.all(boxes.map((box) => start(box, 'while :; do echo line; sleep 0.2; done')))
  const [first] = boxes as [LoadBox, ...LoadBox[]]
  const port = await startApp(fleet, first, await start(first, boxNode(APP)))

  return {
    async key(t, { at, through, number }) {
      const { key, secret } = await sendJson(
        fleet,
        through,
        'POST',
        '/api/v1/keys',
        { name: 'test' },
        session,
      )
      const path = `/v1/box/${pick(number).id}/exec/${printing[number % boxes.length]}/stream`
      const stream = await openStream(at.process.url + path, { authorization: `Bearer ${secret}` })
      t.teardown(stream.disconnect)
      await waitUntil('the stream is attached', () => stream.events.length > 0)
      return {
        closed: stream.ended.catch(() => undefined),
        revoke: () => sendJson(fleet, through, 'DELETE', `/api/v1/keys/${key.id}`, undefined, session),
      }
    },
    async link(_t, { at, through }) {
      const route = `/api/v1/boxes/${first.id}/port-shares`
      const { share } = await sendJson(fleet, through, 'POST', route, { port, access: 'public' })
      const response = await openLink(at, share.origin)
      return {
        closed: new Promise((resolve) => response.once('close', resolve)),
        revoke: () => sendJson(fleet, through, 'DELETE', `/api/v1/port-shares/${share.id}`),
      }
    },
    async member(t, { at, through }) {
      const { userId, headers = {} } = await createMember(fleet, owner)
      const feed = await connectFeed(t, at.process.url, headers)
      await feed.ready()
      return {
        closed: feed.closed,
        revoke: () => sendJson(fleet, through, 'DELETE', `/api/v1/members/${userId}`, undefined, session),
      }
    },
    mount: await prepareMounts(fleet, secretHost, first),
  }
}

async function prepareMounts(fleet: NamespaceFleet, secretHost: SecretHost, box: LoadBox): Promise<Kind> {
  const route = `/api/v1/boxes/${box.id}/secrets`
  const value = 'value-of-the-secret-0123456789'
  const fields = { name: 'TOKEN', value, hosts: [SECRET_HOST], envName: 'TOKEN' }
  const { mount: created } = await sendJson(fleet, fleet.replicas[0], 'POST', route, fields)
  await waitUntil('the box can use the secret', async () => {
    const { broker } = await sendJson(fleet, fleet.replicas[0], 'GET', route)
    if (broker.state === 'failed') throw new Error(broker.message)
    return broker.state === 'ready'
  })
  let mount = created
  return async (t, { through, number }) => {
    mount ??= (
      await sendJson(fleet, through, 'POST', route, { secretId: created.secret.id, envName: 'TOKEN' })
    ).mount
    const path = `/${number}`
    const body = { command: fetchProgram(path), detached: true }
    await sendJson(fleet, through, 'POST', `/v1/box/${box.id}/exec`, body)
    const held = await waitUntil('the server has the request', () => secretHost.held.get(path))
    t.equal(held.credential, value)
    // The agent's connection may have arrived at any replica.
    const others = fleet.replicas.filter(({ network }) => network.address !== held.address)
    t.equal(others.length, fleet.replicas.length - 1)
    const other = others[number % others.length] as NamespaceReplica
    const { id } = mount
    mount = undefined
    return {
      closed: held.closed,
      revoke: () => sendJson(fleet, other, 'DELETE', `${route}/${id}`),
    }
  }
}

async function startApp(fleet: NamespaceFleet, box: LoadBox, processId: string): Promise<number> {
  return waitUntil('the program listens', async () => {
    const path = `/v1/box/${box.id}/exec/${processId}`
    return Number((await sendJson(fleet, fleet.replicas[0], 'GET', path)).stdout)
  })
}

/** Opens a link at the replica. Resolves when the response has begun. */
async function openLink({ network }: NamespaceReplica, origin: string): Promise<IncomingMessage> {
  const { host } = new URL(origin)
  const request = httpRequest({ host: network.address, port: 7070, agent: false, headers: { host } })
  request.on('error', () => undefined).end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  if (response.statusCode !== 200) throw new Error(`the link responded with ${response.statusCode}`)
  response.on('error', () => undefined)
  await once(response, 'data')
  return response.resume()
}

const createMember = ({ db }: NamespaceFleet, owner: Actor) =>
  createTestSession({ instance: { context: { db, clock: systemClock }, owner } } as never, 'member')

/** The header of a session of the owner. */
async function signIn({ replicas }: NamespaceFleet): Promise<Record<string, string>> {
  const [{ process }] = replicas as [NamespaceReplica, ...NamespaceReplica[]]
  const secret = readFileSync(join(process.dataDir, 'sign-in.key'), 'utf8').trim()
  const response = await fetch(`${process.url}/api/v1/sign-in/owner`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ secret }),
  })
  return bySessionOf(response).headers
}

/** @param headers of the credential. Default: the key of the owner */
async function sendJson(
  fleet: NamespaceFleet,
  replica: NamespaceReplica | undefined,
  method: string,
  path: string,
  body?: object,
  headers: Record<string, string> = fleet.authHeaders(),
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields.
): Promise<any> {
  const response = await fetch(`${replica?.process.url}${path}`, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}
