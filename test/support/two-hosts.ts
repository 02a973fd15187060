// Two hosts with machines of their own and a coordinator each, on one database.
import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from '../../coordinator/boxes/lifecycle/lifecycle.ts'
import type { BoxService } from '../../coordinator/boxes/service.ts'
import { createSnapshotService, type SnapshotService } from '../../coordinator/boxes/snapshots/service.ts'
import {
  createSnapshots,
  type Snapshots,
  type SnapshotsOptions,
} from '../../coordinator/boxes/snapshots/snapshots.ts'
import type { Db } from '../../coordinator/db/open.ts'
import type { Actor } from '../../coordinator/http/actor.ts'
import { serveAllRegions } from '../../coordinator/providers/regions.ts'
import type { Replica, ReplicaEvents } from '../../coordinator/replicas/replica.ts'
import type { ObservedState } from '../../shared/api/boxes.ts'
import { systemClock } from '../../shared/clock.ts'
import { newId } from '../../shared/ids.ts'
import { createTestAdmit } from './admit.ts'
import { NO_BOX_SECRETS } from './box-hooks.ts'
import { FakeInfrastructure } from './fake-infrastructure.ts'
import { addReplica } from './replica.ts'
import { waitUntil } from './wait-until.ts'
import { createOwner, createTestBoxService } from './workspace.ts'

const HOUR_MS = 60 * 60_000
const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

/** The coordinator of a host, and the requests that it serves. */
export type TestHost = {
  readonly host: string
  /** The machines outlive the coordinator. */
  readonly infra: FakeInfrastructure
  readonly boxes: BoxService
  readonly snapshots: SnapshotService
  readonly lifecycle: Lifecycle
  /** Starts the coordinator. */
  start(): Promise<void>
  /** Stops it as kill -9 does: its machines, jobs and states remain. The other coordinator finds out when its lease ends. */
  stop(): Promise<void>
}

type Running = { replica: Replica; lifecycle: Lifecycle; snapshots: Snapshots }

/** Each coordinator learns of all changes of the other one. */
export async function createTwoHosts(t: Test, db: Db, options: Partial<LifecycleOptions> = {}) {
  const owner: Actor = await createOwner(db)
  const hosts = [createHost('hst_a'), createHost('hst_b')] as const
  const [a, b] = hosts

  function createHost(host: string) {
    const infra = new FakeInfrastructure()
    infra.canFreeze = true
    const providers = serveAllRegions(infra.provider)
    const state: { running?: Running | undefined } = {}
    const boxes = createTestBoxService(db, {
      host,
      schedule: scheduleBox,
      isConnected: (id) => !!infra.tunnels.current(id),
    })
    const snapshots = createSnapshotService({
      db,
      clock: systemClock,
      host,
      boxes,
      boxSecrets: NO_BOX_SECRETS,
      providers,
      admit: createTestAdmit(),
      schedule: scheduleSnapshot,
      loadPlanLimits: async () => ({ snapshots: 100 }),
    })

    async function start(): Promise<void> {
      const events = new EventEmitter<ReplicaEvents>()
      const replica = {
        id: newId('replica'),
        host,
        isShared: true,
        isLeaseValid: true,
        fleet: null,
        events,
        close: async () => undefined,
      }
      await addReplica(db, replica.id, HOUR_MS, host)
      const common = { db, replica, clock: systemClock, providers, backoff: () => 1 }
      const lifecycle = createLifecycle({
        ...common,
        log: silentLog as unknown as LifecycleOptions['log'],
        tunnels: infra.tunnels,
        ingest: { apply: async () => undefined },
        coordinatorUrl: 'http://127.0.0.1:7070',
        connectTimeoutMs: 5_000,
        agentReconnectMs: 0,
        disconnectGraceMs: 0,
        ...options,
      })
      const jobs = createSnapshots({
        ...common,
        log: silentLog as unknown as SnapshotsOptions['log'],
        boxSecrets: NO_BOX_SECRETS,
        scheduleBox,
        finalSnapshots: false,
      })
      const onChange = () => {
        for (const { state } of hosts) state.running?.snapshots.onBoxChange()
      }
      lifecycle.onChange(onChange, { onGap: onChange })
      state.running = { replica, lifecycle, snapshots: jobs }
      await lifecycle.start()
      await jobs.start()
    }

    async function stop(): Promise<void> {
      const { running } = state
      if (running === undefined) return
      state.running = undefined
      await Promise.all([running.lifecycle.close(), running.snapshots.close()])
      await addReplica(db, running.replica.id, -1, host)
      for (const other of hosts)
        (other.state.running?.replica.events as EventEmitter<ReplicaEvents> | undefined)?.emit(
          'stopped',
          running.replica.id,
        )
    }
    t.teardown(stop)

    return {
      host,
      infra,
      state,
      boxes,
      snapshots,
      get lifecycle() {
        if (state.running === undefined) throw new Error(`Host ${host} has no coordinator.`)
        return state.running.lifecycle
      },
      start,
      stop,
    }
  }

  function scheduleBox(id: string): void {
    for (const { state } of hosts) state.running?.lifecycle.schedule(id)
  }

  function scheduleSnapshot(id: string): void {
    for (const { state } of hosts) state.running?.snapshots.schedule(id)
  }

  const getDetail = (id: string) => a.boxes.get(owner, id)

  async function waitForState(id: string, observed: ObservedState): Promise<void> {
    await waitUntil(`box ${id} is ${observed}`, async () => {
      const { box, job } = await getDetail(id)
      return box.observedState === observed && job === null
    })
  }

  /** Creates a box with files through a coordinator, which has its machine. */
  async function createRunningBox(through: TestHost, files = 'content'): Promise<string> {
    const { id } = await through.boxes.create(owner, {})
    await waitForState(id, 'running')
    through.infra.setFiles(id, files)
    return id
  }

  async function waitForSnapshot(id: string): Promise<void> {
    await waitUntil(`snapshot ${id} is available`, async () =>
      (await a.snapshots.list(owner)).some(
        (snapshot) => snapshot.id === id && snapshot.status === 'available',
      ),
    )
  }

  return {
    db,
    owner,
    a: a as TestHost,
    b: b as TestHost,
    scheduleBox,
    getDetail,
    waitForState,
    createRunningBox,
    waitForSnapshot,
  }
}

/** The calls to the provider for the box or the snapshot. */
export const listCalls = ({ infra }: Pick<TestHost, 'infra'>, id: string): string[] =>
  infra.calls.filter((call) => call.includes(id))
