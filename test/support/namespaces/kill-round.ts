// One replica at a time is killed and started again, under load.
import { setTimeout as delay } from 'node:timers/promises'
import { waitUntil } from '../wait-until.ts'
import { type Outage, summarizeAttempts, summarizeTimes } from './figures.ts'
import type { NamespaceFleet, NamespaceReplica } from './fleet.ts'
import type { NamespaceLoad } from './load.ts'

/** A replica is down for at most this time: others take over its work after 15 s. */
const MAX_DOWN_MS = 20_000
const MAX_PAUSE_MS = 10_000

type Death = Outage & { agents: number; reconnectedMs: number }

export async function runKillRound(
  fleet: NamespaceFleet,
  load: NamespaceLoad,
  { seconds, random }: { seconds: number; random: () => number },
) {
  async function killOne(replica: NamespaceReplica): Promise<Death> {
    const id = await fleet.findId(replica)
    const boxIds = await fleet.listTunnels(id)
    const startedAt = performance.now()
    await replica.process.kill('SIGKILL')
    // A box that the load deletes meanwhile does not connect again.
    const known = new Set([...fleet.boxes.map((box) => box.id), ...fleet.simulated.boxIds])
    const agents = boxIds.filter((boxId) => known.has(boxId))
    await fleet.waitUntilMoved(agents, id)
    const reconnectedMs = Math.round(performance.now() - startedAt)
    await delay(random() * MAX_DOWN_MS)
    await replica.process.start()
    await waitUntil('the replica is ready', async () => (await fleet.readStatus(replica, '/readyz')) === 200)
    return { startedAt, endedAt: performance.now(), agents: agents.length, reconnectedMs }
  }

  const first = load.attempts.length
  const deaths: Death[] = []
  const endsAt = performance.now() + seconds * 1_000
  while (deaths.length === 0 || performance.now() < endsAt) {
    const replica = fleet.replicas[Math.floor(random() * fleet.replicas.length)]
    if (replica === undefined) throw new Error('there is no replica')
    deaths.push(await load.during(killOne(replica)))
    await load.during(delay(random() * MAX_PAUSE_MS))
  }
  return {
    deaths: deaths.length,
    agentsOfDead: deaths.map(({ agents }) => agents),
    downMs: deaths.map(({ startedAt, endedAt }) => Math.round(endedAt - startedAt)),
    lastAgentBackMs: summarizeTimes(deaths.map(({ reconnectedMs }) => reconnectedMs)),
    ...summarizeAttempts(load.attempts.slice(first), deaths),
    tunnels: await fleet.countTunnels(),
  }
}
