// Three coordinators share a database, and one at a time is killed, while every kind of request arrives at any of them. No byte may
// be lost, no command may run twice, no box may exist twice, and requests fail only for a moment after each death.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Test } from 'tap'
import type { CoordinatorProcess } from '../coordinator-process.ts'
import { joinMachine } from '../joined-machine.ts'
import type { Postgres } from '../postgres.ts'
import { startPostgresProxy } from '../postgres-proxy.ts'
import { createSeededRandom } from '../random.ts'
import { startReplicaFleet } from '../replica-fleet.ts'
import { waitUntil } from '../wait-until.ts'
import { type Attempt, startReplicaLoad } from './replica-load.ts'

const REPLICAS = 3
/** The lease of a coordinator: requests may fail for this long after its death. */
const TAKEOVER_MS = 15_000
/** Also while a coordinator drains: the request was in flight when the agent was moved, or has been repeated too early. */
const DRAIN_RESULTS = ['ok', 'box_unreachable', 'idempotency_in_progress']

export type ReplicasRoundOptions = {
  seed: number
  /** How often a coordinator stops. */
  deaths: number
  /** SIGKILL: at once. SIGTERM: it drains. */
  signal: 'SIGKILL' | 'SIGTERM'
  /** How long a coordinator is down, at most. */
  maxDownMs: number
}

/** Requests may fail from `at` until the lease of a coordinator that died at `until` has ended. */
type Outage = { at: number; until: number }
type Death = Outage & { reconnectedMs: number; exitedMs: number; downMs: number; agents: number }

/** Starts the coordinators, with two local boxes of the first one and a machine, under load. */
async function setUp(t: Test, databaseUrls: readonly string[], seed: number) {
  const random = createSeededRandom(seed)
  const fleet = await startReplicaFleet(t, { databaseUrls })
  const [first] = fleet.replicas
  if (first === undefined) throw new Error('there is no coordinator')
  const database = new pg.Client({ connectionString: databaseUrls[0] })
  await database.connect()
  t.teardown(() => database.end())
  const { id, hostname } = await first.waitForFirstBox()
  const { box } = await first.sendJson('POST', '/api/v1/boxes', { name: 'lime' })
  await first.waitForState(box.id, 'running')
  const machine = await joinMachine(t, { ...first, url: first.url, agentUrl: fleet.url })
  const boxes = [{ id, hostname }, box, { id: machine.boxId, hostname: 'fig' }]
  return { fleet, database, random, load: startReplicaLoad(t, { fleet, boxes, random, seed }) }
}

export async function runReplicasRound(t: Test, postgres: Postgres, options: ReplicasRoundOptions) {
  const { seed, deaths, signal, maxDownMs } = options
  const url = await postgres.newDatabase()
  const { fleet, database, random, load } = await setUp(t, Array(REPLICAS).fill(url), seed)

  async function stopOne(replica: CoordinatorProcess): Promise<Death> {
    const owner = await findReplica(database, replica)
    const { rows } = await database.query('select box_id from tunnels where lease_owner = $1', [owner])
    const at = performance.now()
    const exited = replica.kill(signal).then(() => performance.now())
    await waitForAgents(
      database,
      owner,
      rows.map(({ box_id }) => box_id),
    )
    const reconnectedMs = Math.round(performance.now() - at)
    const until = await exited
    await delay(random() * maxDownMs)
    const downMs = Math.round(performance.now() - at)
    await fleet.restart(replica)
    return { at, until, reconnectedMs, exitedMs: Math.round(until - at), downMs, agents: rows.length }
  }

  const all: Death[] = []
  async function stopAll(): Promise<void> {
    await delay(2_000)
    for (let number = 0; number < deaths; number++) {
      const replica = fleet.replicas[Math.floor(random() * REPLICAS)]
      if (replica !== undefined) all.push(await stopOne(replica))
      // The next one stops when the one before works again.
      await delay(random() * 3_000)
    }
  }
  await Promise.race([stopAll(), load.failed])
  await Promise.race([load.stop(), load.failed])
  await load.check()
  checkFailures(t, load.attempts, all)
  if (signal === 'SIGTERM') {
    const refused = load.attempts.filter(({ repeats, result }) => repeats && !DRAIN_RESULTS.includes(result))
    t.same(refused.map(describeAttempt), [], 'no request that may be repeated is refused while one drains')
  }
  const deathsOfRound = all.map(({ at: _at, until: _until, ...death }) => death)
  return { seed, deaths: deathsOfRound, ...summarize(load.attempts, all) }
}

/** The last coordinator cannot reach the database for a while: it serves nothing, and its agents connect to the others. */
export async function runCutDatabaseRound(t: Test, postgres: Postgres, { seed }: { seed: number }) {
  const url = await postgres.newDatabase()
  const proxy = await startPostgresProxy(t, url)
  const { fleet, database, load } = await setUp(t, [url, url, proxy.url], seed)
  const last = fleet.replicas.at(-1) as CoordinatorProcess
  const owner = await findReplica(database, last)
  const readStatus = async (path: string) => {
    const response = await last.send('GET', path)
    response.resume()
    return response.statusCode
  }
  const countTunnels = async () => {
    const { rows } = await database.query('select box_id from tunnels where lease_owner = $1', [owner])
    return rows.length
  }
  const outages: Outage[] = []
  async function cutAndRepair() {
    // The agents of a killed one connect to another one, until the last one has some of them.
    for (let number = 0; (await countTunnels()) === 0; number++) {
      const other = fleet.replicas[number % 2] as CoordinatorProcess
      const at = performance.now()
      await other.kill('SIGKILL')
      outages.push({ at, until: performance.now() })
      await fleet.restart(other)
    }
    const at = performance.now()
    const since = () => Math.round(performance.now() - at)
    proxy.cut()
    await waitUntil('it serves nothing', async () => (await readStatus('/readyz')) === 503)
    const unreadyMs = since()
    outages.push({ at, until: performance.now() })
    await waitUntil('its agents are connected to others', async () => (await countTunnels()) === 0)
    const reconnectedMs = since()
    t.equal(await readStatus('/api/v1/boxes'), 503)
    await waitUntil('others have taken over', async () => {
      const { rows } = await database.query(
        'select id from replicas where id = $1 and lease_until > (extract(epoch from clock_timestamp()) * 1000)::bigint',
        [owner],
      )
      return rows.length === 0
    })
    proxy.repair()
    const repairedAt = performance.now()
    await waitUntil('it serves again', async () => (await readStatus('/api/v1/boxes')) === 200)
    return { unreadyMs, reconnectedMs, servesAgainMs: Math.round(performance.now() - repairedAt) }
  }
  const figures = await Promise.race([cutAndRepair(), load.failed])
  await Promise.race([load.stop(), load.failed])
  await load.check()
  checkFailures(t, load.attempts, outages)
  return { ...figures, ...summarize(load.attempts, outages) }
}

async function findReplica(database: pg.Client, { url }: CoordinatorProcess): Promise<string> {
  const { rows } = await database.query('select id from replicas where url = $1 order by started_at desc', [
    new URL(url).origin,
  ])
  return rows[0].id
}

/**
 * Waits until the agents of the boxes are connected to other coordinators than `owner`. A box that is being deleted has none: when
 * the owner has its files, its job continues with the next start.
 */
async function waitForAgents(database: pg.Client, owner: string, boxIds: readonly string[]): Promise<void> {
  const listMissing = async () => {
    const { rows } = await database.query(
      `select boxes.id, desired_state, observed_state, lease_owner from boxes left join tunnels on box_id = boxes.id
        where boxes.id = any($1) and desired_state = 'running' and (lease_owner is null or lease_owner = $2)`,
      [boxIds, owner],
    )
    return rows
  }
  await waitUntil(
    'the agents are connected to other coordinators',
    async () => (await listMissing()).length === 0,
  ).catch(async (error: Error) => {
    const jobs = await database.query('select * from jobs where box_id = any($1)', [boxIds])
    const tunnels = await database.query('select box_id, lease_owner, generation from tunnels')
    const state = { owner, missing: await listMissing(), jobs: jobs.rows, tunnels: tunnels.rows }
    throw new Error(`${error.message}: ${JSON.stringify(state)}`)
  })
}

const isDuring = ({ startedAt, endedAt }: Attempt, outages: readonly Outage[]): boolean =>
  outages.some(({ at, until }) => endedAt >= at && startedAt < until + TAKEOVER_MS)

const describeAttempt = ({ kind, result, message, startedAt, endedAt }: Attempt): string =>
  `${kind} ${result}, ${Math.round(startedAt)} to ${Math.round(endedAt)} ms: ${message}`

/** Those that may be repeated have succeeded at last: the load ends only then. */
function checkFailures(t: Test, attempts: readonly Attempt[], outages: readonly Outage[]): void {
  const late = attempts.filter((attempt) => attempt.result !== 'ok' && !isDuring(attempt, outages))
  t.same(late.map(describeAttempt), [], 'requests fail only after a death')
}

/** Times are milliseconds. */
function summarize(attempts: readonly Attempt[], outages: readonly Outage[]) {
  const results: Record<string, number> = {}
  for (const { kind, result } of attempts) {
    const key = result === 'ok' ? 'ok' : `${kind} ${result}`
    results[key] = (results[key] ?? 0) + 1
  }
  const execs = attempts.filter(({ kind, result }) => kind === 'exec' && result === 'ok')
  const quantile = (list: readonly Attempt[], q: number): number | undefined => {
    const times = list.map(({ startedAt, endedAt }) => endedAt - startedAt).sort((a, b) => a - b)
    const time = times[Math.min(times.length - 1, Math.floor(times.length * q))]
    return time === undefined ? undefined : Math.round(time)
  }
  return {
    requests: attempts.length,
    results,
    messages: [...new Set(attempts.map(({ message }) => message).filter((message) => message !== ''))],
    execP50: quantile(execs, 0.5),
    execP99: quantile(execs, 0.99),
    execP99AfterDeath: quantile(
      execs.filter((exec) => isDuring(exec, outages)),
      0.99,
    ),
  }
}
