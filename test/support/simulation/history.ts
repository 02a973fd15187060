// One random history of a box: requests, failures, kills and the passage of time, reproducible by its seed.

import { mock } from 'node:test'
import { enqueueSleep, enqueueStop } from '../../../coordinator/boxes/lifecycle/enqueue-jobs.ts'
import { ALLOWED_TRANSITIONS } from '../../../coordinator/boxes/lifecycle/transitions.ts'
import { lockBox } from '../../../coordinator/db/lock-box.ts'
import { transaction } from '../../../coordinator/db/transaction.ts'
import type { Actor } from '../../../coordinator/http/actor.ts'
import { hashSecret } from '../../../coordinator/http/hash-secret.ts'
import type { ObservedState } from '../../../shared/api/boxes.ts'
import type { Region, Tier } from '../../../shared/tiers.ts'
import { FakeInfrastructure } from '../fake-infrastructure.ts'
import { createSeededRandom } from '../random.ts'
import { createFaults, type FaultProfile, type Faults } from './faults.ts'
import type { MemoryDatabase } from './memory-database.ts'
import { createSimulatedCoordinator, type SimulatedCoordinator } from './simulated-coordinator.ts'

const REGIONS: readonly Region[] = ['us-west-2', 'us-east-1', 'eu-central-1']
const TIERS: readonly Tier[] = ['nano', 'lite', 'pro']
const START_TIME = Date.UTC(2030, 0, 1)
const SECOND = 1000
const MINUTE = 60 * SECOND
const DAY = 24 * 60 * MINUTE
/** How much virtual time a box has to reach its desired state once nothing fails any more. */
const SETTLE_MS = 6 * 60 * MINUTE

export type HistoryResult = { visited: Set<ObservedState>; states: string[] }

type Action = { name: string; weight: number; run(): unknown }

/** Lets every promise that can settle now do so. */
const flush = () => new Promise<void>((resolve) => setImmediate(resolve))

class History {
  readonly #random: () => number
  readonly #database: MemoryDatabase
  readonly #owner: Actor
  readonly #faults: Faults
  readonly #regions: Map<Region, FakeInfrastructure>
  readonly #finalSnapshots: boolean
  readonly #log: string[] = []
  /** What was written to the files of the first box so far. */
  readonly #written = ['']
  #coordinator: SimulatedCoordinator
  #boxId = ''

  constructor(seed: number, database: MemoryDatabase, owner: Actor) {
    this.#random = createSeededRandom(seed)
    this.#database = database
    this.#owner = owner
    this.#faults = createFaults(this.#random, this.#pickProfile())
    const first = new FakeInfrastructure()
    this.#regions = new Map(
      REGIONS.map((region, i) => [region, i === 0 ? first : new FakeInfrastructure(first)]),
    )
    const canFreeze = this.#random() < 0.7
    const isOneDisk = this.#random() < 0.5
    for (const infra of this.#regions.values()) {
      infra.canFreeze = canFreeze
      if (isOneDisk) infra.onSameDisk = this.#regions
    }
    this.#finalSnapshots = this.#random() < 0.2
    this.#coordinator = this.#createCoordinator()
  }

  get log(): readonly string[] {
    return this.#log
  }

  async run(): Promise<HistoryResult> {
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: START_TIME })
    try {
      await this.#start()
      await this.#create()
      for (let count = 4 + Math.floor(this.#random() * 14); count > 0; count--) await this.#act()
      await this.#settle()
      await this.#checkSettled()
      await this.#deleteAll()
      await this.#checkNothingLeft()
      return await this.#checkEvents()
    } finally {
      this.#coordinator.point.kill()
      mock.timers.reset()
    }
  }

  #pickProfile(): FaultProfile {
    const kind = this.#random()
    if (kind < 0.1) return { fail: 0, hang: 0, kill: 0, budget: 0 }
    const budget = 1 + Math.floor(this.#random() * 12)
    if (kind < 0.4) return { fail: 0.3, hang: 0, kill: 0, budget }
    if (kind < 0.7) return { fail: 0, hang: 0, kill: 0.03, budget }
    return { fail: 0.15, hang: 0.05, kill: 0.02, budget }
  }

  #createCoordinator(): SimulatedCoordinator {
    const point = this.#faults.createPoint()
    const coordinator = createSimulatedCoordinator(this.#database, this.#regions, point, {
      finalSnapshots: this.#finalSnapshots,
    })
    point.onKill(() => {
      // Only clears the timers: every statement and call of the killed coordinator hangs.
      void coordinator.lifecycle.close()
      void coordinator.snapshots.close()
    })
    return coordinator
  }

  /** Starts a coordinator, again and again while it is killed during its start. */
  async #start(): Promise<void> {
    for (;;) {
      const { start, point } = this.#coordinator
      const started = start()
      started.catch(() => point.kill())
      await flush()
      if (!point.isKilled()) break
      this.#log.push('killed during its start')
      this.#coordinator = this.#createCoordinator()
    }
    await this.#reconnectAgents()
  }

  /** After a kill, the connections of the agents are closed. */
  async #restart(): Promise<void> {
    this.#coordinator.point.kill()
    await flush()
    for (const infra of this.#regions.values()) for (const id of infra.machines.keys()) infra.dropTunnel(id)
    this.#coordinator = this.#createCoordinator()
    await this.#start()
  }

  /** The agents of running machines connect with the token of their last start. */
  async #reconnectAgents(): Promise<void> {
    for (const infra of this.#regions.values()) {
      if (!infra.agentsConnect) continue
      for (const [id, { state, token }] of infra.machines) {
        if (state !== 'running') continue
        const box = await this.#findBox(id)
        if (box?.agent_token_hash === hashSecret(token)) infra.connectAgent(id)
      }
    }
  }

  #findBox = (id: string) =>
    this.#database.db.selectFrom('boxes').selectAll().where('id', '=', id).executeTakeFirst()

  /** A request whose response is lost when the coordinator is killed, or which is refused. */
  async #request(send: (coordinator: SimulatedCoordinator) => Promise<unknown>): Promise<void> {
    send(this.#coordinator).catch((error: unknown) => {
      if (error instanceof Error && 'code' in error) return this.#log.push(`  refused: ${error.message}`)
      return this.#log.push(`  failed: ${error}`)
    })
    await flush()
  }

  async #create(): Promise<void> {
    while (this.#boxId === '') {
      await this.#request(({ boxes }) => boxes.create(this.#owner, {}))
      const box = await this.#database.db.selectFrom('boxes').select('id').executeTakeFirst()
      if (box) this.#boxId = box.id
      else if (this.#coordinator.point.isKilled()) await this.#restart()
    }
  }

  readonly #actions: Action[] = [
    {
      name: 'wake',
      weight: 4,
      run: () => this.#request(({ boxes }) => boxes.wake(this.#owner, this.#boxId)),
    },
    {
      name: 'suspend',
      weight: 4,
      run: () => this.#request(({ boxes }) => boxes.suspend(this.#owner, this.#boxId)),
    },
    {
      name: 'resize',
      weight: 2,
      run: () => {
        const tier = this.#pick(TIERS)
        return this.#request(({ resizes }) => resizes.resize(this.#owner, this.#boxId, tier, null))
      },
    },
    {
      name: 'move',
      weight: 4,
      run: () => {
        const region = this.#pick(REGIONS)
        return this.#request(({ moveBox }) => moveBox(this.#owner, this.#boxId, region))
      },
    },
    { name: 'stop when frozen', weight: 1, run: () => this.#requestJob(enqueueStop) },
    { name: 'sleep', weight: 5, run: () => this.#requestJob(enqueueSleep) },
    {
      name: 'delete',
      weight: 0.3,
      run: () => this.#request(({ boxes }) => boxes.remove(this.#owner, this.#boxId)),
    },
    {
      name: 'snapshot',
      weight: 1,
      run: () =>
        this.#request(({ snapshotService }) =>
          snapshotService.create(this.#owner, { boxId: this.#boxId, name: 'copy' }),
        ),
    },
    {
      name: 'fork',
      weight: 1,
      run: () => this.#request(({ snapshotService }) => snapshotService.fork(this.#owner, this.#boxId, {})),
    },
    { name: 'write files', weight: 4, run: () => this.#writeFiles() },
    { name: 'kill', weight: 1, run: () => this.#restart() },
    { name: 'reboot', weight: 0.5, run: () => this.#reboot() },
    { name: 'Ctrl-C', weight: 1, run: () => this.#shutDown() },
    { name: 'lose the agent', weight: 1, run: () => this.#loseAgent() },
    { name: 'agents return', weight: 2, run: () => this.#returnAgents() },
    { name: 'a moment', weight: 3, run: () => this.#advance(this.#random() * 3 * SECOND) },
    { name: 'a minute', weight: 10, run: () => this.#advance(this.#random() * 3 * MINUTE) },
    { name: 'a day', weight: 1, run: () => this.#skipDay() },
  ]

  async #act(): Promise<void> {
    const total = this.#actions.reduce((sum, { weight }) => sum + weight, 0)
    let value = this.#random() * total
    const action = this.#actions.find(({ weight }) => {
      value -= weight
      return value < 0
    })
    if (action === undefined) return
    this.#log.push(action.name)
    await action.run()
    this.#log.push(...this.#faults.log.splice(0).map((fault) => `  ${fault}`))
    if (this.#coordinator.point.isKilled()) await this.#restart()
  }

  #pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T
  }

  #requestJob(enqueue: typeof enqueueStop): Promise<void> {
    return this.#request(async ({ db, lifecycle }) => {
      await transaction(db, async (trx, onCommit) => {
        const box = await lockBox(trx, this.#boxId)
        if (!box || !(await enqueue(trx, box, { reason: 'scheduled', now: Date.now() }))) return
        onCommit(() => lifecycle.schedule(box.id))
      })
    })
  }

  /** What the processes of a running box write. */
  async #writeFiles(): Promise<void> {
    const box = await this.#findBox(this.#boxId)
    if (box?.observed_state !== 'running' && box?.observed_state !== 'degraded') return
    const machine = this.#regions.get(box.region)?.machines.get(box.id)
    if (machine?.state !== 'running') return
    machine.files = `version ${this.#written.length}`
    this.#written.push(machine.files)
  }

  async #reboot(): Promise<void> {
    this.#coordinator.point.kill()
    for (const infra of this.#regions.values()) for (const id of infra.machines.keys()) infra.powerOff(id)
    await this.#restart()
  }

  /** Suspends the boxes and stops the coordinator, as `box down` does. */
  async #shutDown(): Promise<void> {
    const { lifecycle, snapshots } = this.#coordinator
    const stopped = Promise.all([
      lifecycle.suspendLocalBoxes('the coordinator was stopped'),
      snapshots.close(),
    ])
    stopped.catch((error: unknown) => this.#log.push(`  failed: ${error}`))
    await this.#advance(2 * MINUTE)
    await this.#restart()
  }

  #loseAgent(): void {
    for (const infra of this.#regions.values()) {
      infra.agentsConnect = false
      infra.dropTunnel(this.#boxId)
    }
  }

  async #returnAgents(): Promise<void> {
    for (const infra of this.#regions.values()) infra.agentsConnect = true
    await this.#reconnectAgents()
    await flush()
  }

  /** In growing steps: a timer that is set meanwhile is at most one step late. */
  async #advance(ms: number): Promise<void> {
    await flush()
    for (let passed = 0, step = 200; passed < ms; passed += step, step = Math.min(step * 1.5, 20 * SECOND)) {
      if (this.#coordinator.point.isKilled()) return
      mock.timers.tick(Math.ceil(step))
      await flush()
    }
  }

  /** Makes a second move possible. */
  async #skipDay(): Promise<void> {
    await this.#advance(MINUTE)
    if (this.#coordinator.point.isKilled()) return
    mock.timers.tick(DAY)
    await flush()
  }

  /** Runs without new faults until nothing is in progress. A call that hangs ends with its coordinator. */
  async #settle(): Promise<void> {
    this.#faults.enabled = false
    await this.#returnAgents()
    await this.#restart()
    const endsAt = Date.now() + SETTLE_MS
    while (!(await this.#isSettled())) {
      if (Date.now() > endsAt)
        throw new Error(`nothing fails any more, but this does not end: ${await this.#describe()}`)
      await this.#advance(20 * SECOND)
      await this.#returnAgents()
    }
  }

  async #isSettled(): Promise<boolean> {
    const { db } = this.#database
    const jobs = await db.selectFrom('jobs').select('box_id').executeTakeFirst()
    const snapshotJobs = await db.selectFrom('snapshot_jobs').select('snapshot_id').executeTakeFirst()
    return jobs === undefined && snapshotJobs === undefined
  }

  async #describe(): Promise<string> {
    const { db } = this.#database
    const boxes = await db
      .selectFrom('boxes')
      .select([
        'id',
        'desired_state',
        'observed_state',
        'suspended_as',
        'archive_id',
        'leftovers',
        'region',
        'desired_region',
      ])
      .execute()
    const jobs = await db.selectFrom('jobs').selectAll().execute()
    const snapshotJobs = await db.selectFrom('snapshot_jobs').selectAll().execute()
    const machines = [...this.#regions].map(([region, { machines, archives }]) => ({
      region,
      machines: [...machines.entries()],
      archives: [...archives.entries()],
    }))
    return JSON.stringify({ boxes, jobs, snapshotJobs, machines }, null, 1)
  }

  async #assert(condition: boolean, message: string): Promise<void> {
    if (!condition) throw new Error(`${message}: ${await this.#describe()}`)
  }

  async #checkSettled(): Promise<void> {
    await this.#checkSnapshots()
    for (const box of await this.#database.db.selectFrom('boxes').selectAll().execute()) {
      const { id, observed_state: observed, desired_state: desired, region } = box
      const state = observed === 'deep_sleep' ? 'suspended' : observed
      await this.#assert(
        state === desired || (observed === 'provision_failed' && desired !== 'terminated'),
        `box ${id} is ${observed} instead of ${desired}`,
      )
      await this.#assert(box.leftovers === null && box.desired_region === null, `box ${id} has leftovers`)
      const infra = this.#regions.get(region)
      const machine = infra?.machines.get(id)
      const expected =
        observed === 'suspended' ? (box.suspended_as === 'frozen' ? 'frozen' : 'stopped') : observed
      if (observed === 'running' || observed === 'suspended')
        await this.#assert(machine?.state === expected, `the machine of box ${id} is not ${expected}`)
      if (observed !== 'running' && observed !== 'suspended' && observed !== 'deep_sleep') continue
      const files = observed === 'deep_sleep' ? infra?.archives.get(box.archive_id ?? '') : machine?.files
      const isIntact =
        id === this.#boxId ? files === this.#written.at(-1) : this.#written.includes(files ?? '?')
      await this.#assert(isIntact, `box ${id} has the files ${files}, not ${this.#written.at(-1)}`)
    }
  }

  /** A snapshot of the first box has files that the box has had. */
  async #checkSnapshots(): Promise<void> {
    const { db } = this.#database
    const snapshots = await db.selectFrom('snapshots').selectAll().where('status', '=', 'available').execute()
    for (const { id, box_id: boxId, region } of snapshots) {
      if (boxId !== this.#boxId) continue
      const files = this.#regions.get(region)?.archives.get(id)
      await this.#assert(this.#written.includes(files ?? '?'), `the snapshot ${id} has the files ${files}`)
    }
  }

  async #deleteAll(): Promise<void> {
    const { db } = this.#database
    for (const { id } of await db.selectFrom('boxes').select('id').execute())
      await this.#request(({ boxes }) => boxes.remove(this.#owner, id))
    await this.#settle()
    for (const { id } of await db.selectFrom('snapshots').select('id').execute())
      await this.#request(({ snapshotService }) => snapshotService.remove(this.#owner, id))
    await this.#settle()
  }

  async #checkNothingLeft(): Promise<void> {
    const { db } = this.#database
    for (const { id, observed_state: state } of await db.selectFrom('boxes').selectAll().execute()) {
      await this.#assert(state === 'terminated', `box ${id} is ${state} after its deletion`)
      const schedule = await db
        .selectFrom('schedules')
        .selectAll()
        .where('target_id', '=', id)
        .executeTakeFirst()
      await this.#assert(schedule === undefined, `the deleted box ${id} has the schedule ${schedule?.kind}`)
    }
    for (const [region, { machines, archives }] of this.#regions) {
      await this.#assert(machines.size === 0, `there are machines left in ${region}`)
      await this.#assert(archives.size === 0, `there are archives left in ${region}`)
    }
    const pending = await db.selectFrom('operations').selectAll().where('status', '!=', 'completed').execute()
    await this.#assert(pending.length === 0, `${pending.length} operations are not completed`)
  }

  /** Each event continues from the state of the previous one, by an allowed transition. */
  async #checkEvents(): Promise<HistoryResult> {
    const visited = new Set<ObservedState>()
    const states: string[] = []
    const events = await this.#database.db.selectFrom('box_events').selectAll().orderBy('seq').execute()
    const last = new Map<string, ObservedState>()
    for (const { box_id: boxId, from_state: from, to_state: to, reason } of events) {
      const previous = last.get(boxId)
      // The oldest events of a box are deleted.
      await this.#assert(
        previous === undefined || from === previous,
        `an event leads from ${from}, not ${previous}`,
      )
      const isAllowed =
        from === null || ALLOWED_TRANSITIONS[from].includes(to) || (from === to && to === 'suspended')
      await this.#assert(isAllowed, `the transition from ${from} to ${to} is not allowed`)
      await this.#assert(reason.length > 0, `the transition from ${from} to ${to} has no reason`)
      last.set(boxId, to)
      visited.add(to)
      states.push(`${from} → ${to}: ${reason}`)
    }
    return { visited, states }
  }
}

/** Throws an Error with the seed and the steps of the history when a property is violated. */
export async function runHistory(
  seed: number,
  database: MemoryDatabase,
  owner: Actor,
): Promise<HistoryResult> {
  const history = new History(seed, database, owner)
  try {
    return await history.run()
  } catch (error) {
    const steps = history.log.map((line, i) => `${i + 1}. ${line}`).join('\n')
    throw new Error(
      `History ${seed} failed.\n${error instanceof Error ? error.stack : error}\nSteps:\n${steps}`,
    )
  } finally {
    await clear(database)
  }
}

async function clear({ db }: MemoryDatabase): Promise<void> {
  const tables = [
    'box_events',
    'box_moves',
    'jobs',
    'snapshot_jobs',
    'snapshots',
    'schedules',
    'operations',
    'boxes',
  ] as const
  for (const table of tables) await db.deleteFrom(table).execute()
}
