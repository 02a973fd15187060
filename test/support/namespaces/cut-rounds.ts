// The packets between one replica and Postgres are dropped, and those between two replicas, under load.
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { waitUntil } from '../wait-until.ts'
import { summarizeAttempts } from './figures.ts'
import type { NamespaceFleet, NamespaceReplica } from './fleet.ts'
import type { NamespaceLoad } from './load.ts'
import { POSTGRES_ADDRESS } from './network.ts'

type Round = { fleet: NamespaceFleet; load: NamespaceLoad; seconds: number }

/** The replica serves nothing, and its agents connect to the others, until it can use Postgres again. */
export async function runPostgresCutRound(t: Test, { fleet, load, seconds }: Round) {
  const replica = fleet.replicas.at(-1) as NamespaceReplica
  const first = load.attempts.length
  const known = [...fleet.boxes.map(({ id }) => id), ...fleet.simulated.boxIds]

  async function cutAndRepair() {
    const id = await fleet.findId(replica)
    // After a restart, the others give it some.
    const agents = await waitUntil('it has agents', async () => (await fleet.listTunnels(id)).length)
    const startedAt = performance.now()
    const since = () => Math.round(performance.now() - startedAt)
    const repair = replica.network.drop(POSTGRES_ADDRESS)
    await waitUntil('it is not ready', async () => (await fleet.readStatus(replica, '/readyz')) === 503)
    const unreadyMs = since()
    await waitUntil('it serves nothing', async () => (await readCode(fleet, replica)) === 503)
    const refusesMs = since()
    await fleet.waitUntilMoved(known, id)
    const lastAgentBackMs = since()
    await delay(seconds * 1_000)
    t.equal(await fleet.readStatus(replica, '/readyz'), 503)
    t.equal(await readCode(fleet, replica), 503)
    t.same(await fleet.listTunnels(id), [], 'no agent is attached to it')
    t.equal(await fleet.readStatus(replica, '/healthz'), 200, 'its process continues')
    const cutMs = since()
    repair()
    const endedAt = performance.now()
    await waitUntil('it is ready', async () => (await fleet.readStatus(replica, '/readyz')) === 200)
    await waitUntil('it serves', async () => (await readCode(fleet, replica)) === 200)
    const servesAgainMs = Math.round(performance.now() - endedAt)
    return {
      outage: { startedAt, endedAt: performance.now() },
      figures: { agents, unreadyMs, refusesMs, lastAgentBackMs, cutMs, servesAgainMs },
    }
  }

  const { outage, figures } = await load.during(cutAndRepair())
  return { ...figures, ...summarizeAttempts(load.attempts.slice(first), [outage]) }
}

/** A request about a box at this replica, which may forward it. Returns its status. */
async function readCode(fleet: NamespaceFleet, replica: NamespaceReplica): Promise<number | undefined> {
  const [box] = fleet.boxes
  const response = await fleet.sendTo(replica, 'GET', `/v1/box/${box?.id}/exec`)
  response.resume()
  return response.statusCode
}

/** Requests at one of both replicas about boxes of the other one fail, and no others. */
export async function runPeersCutRound(t: Test, { fleet, load, seconds }: Round) {
  const [a, b] = fleet.replicas as [NamespaceReplica, NamespaceReplica, ...NamespaceReplica[]]
  const first = load.attempts.length
  const areReady = async () => {
    for (const replica of fleet.replicas) t.equal(await fleet.readStatus(replica, '/readyz'), 200)
  }

  async function cutAndRepair() {
    t.same(
      await tryAll(fleet),
      Array(9).fill('ok'),
      'before: each replica serves the boxes of each other one',
    )
    const startedAt = performance.now()
    const repair = a.network.drop(b.network.address)
    const results: string[][] = []
    do {
      results.push(await tryAll(fleet))
      await areReady()
    } while (performance.now() < startedAt + seconds * 1_000)
    for (const result of results)
      t.same(
        result.map((code) => (code === 'ok' ? 'ok' : 'fails')),
        ['ok', 'fails', 'ok', 'fails', 'ok', 'ok', 'ok', 'ok', 'ok'],
        'only the requests that would cross fail',
      )
    repair()
    const endedAt = performance.now()
    await waitUntil('all requests succeed', async () =>
      (await tryAll(fleet)).every((result) => result === 'ok'),
    )
    await areReady()
    return {
      outage: { startedAt, endedAt },
      codes: [...new Set(results.flat())],
      crossMs: crossTimes.splice(0),
      servesAgainMs: Math.round(performance.now() - endedAt),
    }
  }

  const { outage, ...figures } = await load.during(cutAndRepair())
  return { ...figures, ...summarizeAttempts(load.attempts.slice(first), [outage]) }
}

/** The times of failed requests. */
const crossTimes: number[] = []

/** Sends a command to a simulated agent of each replica through each replica: by the replica, then by the owner. */
async function tryAll(fleet: NamespaceFleet): Promise<string[]> {
  const results: Promise<string>[] = []
  for (const replica of fleet.replicas)
    for (const owner of fleet.replicas.keys()) results.push(tryOne(fleet, replica, owner))
  return Promise.all(results)
}

async function tryOne(fleet: NamespaceFleet, replica: NamespaceReplica, owner: number): Promise<string> {
  const boxId = await waitUntil(`a simulated agent is connected to replica ${owner}`, async () => {
    const target = fleet.replicas[owner] as NamespaceReplica
    const tunnels = new Set(await fleet.listTunnels(await fleet.findId(target)))
    return fleet.simulated.boxIds.find((id) => tunnels.has(id))
  })
  const startedAt = performance.now()
  const headers = { ...fleet.simulated.authHeaders(), 'content-type': 'application/json' }
  const body = JSON.stringify({ command: 'across' })
  const response = await fleet.sendTo(replica, 'POST', `/v1/box/${boxId}/exec`, body, headers)
  const text = Buffer.concat(await response.toArray()).toString()
  // Its agent may have been moved to another replica.
  if ((await fleet.findOwner(boxId)) !== owner) return tryOne(fleet, replica, owner)
  if (response.statusCode === 200) return 'ok'
  crossTimes.push(Math.round(performance.now() - startedAt))
  return JSON.parse(text).error.code
}
