// Bodies of requests end while the rights of their credential are taken. A request whose body ends later must have no effect.
import { randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import type { TestCoordinator } from '../coordinator.ts'
import { createSeededRandom } from '../random.ts'
import { createTestSession } from '../session.ts'

const REQUESTS = 40
/** The rights are taken in this time. Half of the bodies end in it, the others afterwards. */
const DURATION_MS = 200

type Owner = Awaited<ReturnType<typeof createTestSession>>
type HeldRequest = { path: string; createBody(name: string): object }

export async function runHeldBodiesRound(t: Test, coordinator: TestCoordinator, { seed }: { seed: number }) {
  const { api } = coordinator
  const random = createSeededRandom(seed)
  const owner = await createTestSession(coordinator)
  const { json: created } = await api('POST', '/keys', { name: `revoked-${seed}` }, owner)
  const revoke = () => api('DELETE', `/keys/${created.key.id}`, undefined, owner)
  const ofKey = { authorization: `Bearer ${created.secret}` }
  const box = { path: '/boxes', createBody: (name: string) => ({ name }) }
  await loseRights(t, coordinator, { random, owner, headers: ofKey, held: [box], lose: revoke })

  const other = await createTestSession(coordinator, 'owner')
  const remove = () => api('DELETE', `/members/${other.userId}`, undefined, owner)
  const held = [
    { path: '/keys', createBody: (name: string) => ({ name, user: null }) },
    { path: '/members', createBody: (name: string) => ({ email: `${name}@example.com`, role: 'owner' }) },
    box,
  ]
  await loseRights(t, coordinator, { random, owner, headers: other.headers ?? {}, held, lose: remove })
}

type Loss = {
  random: () => number
  /** Reads what exists afterwards. */
  owner: Owner
  headers: Record<string, string>
  held: readonly HeldRequest[]
  /** Takes the rights of the requests. */
  lose(): Promise<{ status: number }>
}

async function loseRights(t: Test, { url, api }: TestCoordinator, options: Loss): Promise<void> {
  const { random, owner, headers, held, lose } = options
  let isLost = false
  const lost = Promise.withResolvers<void>()
  const requests = Array.from({ length: REQUESTS }, async (_, index) => {
    const { path, createBody } = held[index % held.length] as HeldRequest
    const name = `held-${randomUUID().slice(0, 8)}`
    const body = Buffer.from(JSON.stringify(createBody(name)))
    const sent = request(`${url}/api/v1${path}`, {
      method: 'POST',
      agent: false,
      headers: { 'content-type': 'application/json', 'content-length': body.length, ...headers },
    })
    const answer = new Promise<number | null>((resolve) => {
      sent.once('response', (response) => {
        const { statusCode = 0 } = response
        json(response).then(
          () => resolve(statusCode),
          () => resolve(null),
        )
      })
      sent.once('error', () => resolve(null))
    })
    sent.write(body.subarray(0, 1))
    if (index % 2 === 0) await lost.promise
    await delay(random() * DURATION_MS)
    const wasLost = isLost
    sent.end(body.subarray(1))
    return { name, wasLost, status: await answer }
  })
  await delay(random() * DURATION_MS)
  const { status } = await lose()
  isLost = true
  lost.resolve()
  t.ok(status < 300, `the rights are lost, with status ${status}`)
  const results = await Promise.all(requests)
  const lists = await Promise.all(
    ['/boxes', '/keys', '/members'].map((path) => api('GET', path, undefined, owner)),
  )
  const existing = JSON.stringify(lists.map(({ json }) => json))
  const refused = results.filter(({ wasLost }) => wasLost)
  t.same(
    refused.filter(({ status }) => status !== null && status < 400),
    [],
    `${refused.length} of ${results.length} requests are refused`,
  )
  t.same(
    refused.filter(({ name }) => existing.includes(name)),
    [],
    'they have no effect',
  )
}
