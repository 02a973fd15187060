// One run of the coordinator's services in a simulation. A killed one has no effect any more.
import { Kysely } from 'kysely'
import { createBoxFinder } from '../../../coordinator/boxes/find-box.ts'
import {
  createLifecycle,
  type Lifecycle,
  type LifecycleOptions,
} from '../../../coordinator/boxes/lifecycle/lifecycle.ts'
import { createMoveBox, type MoveBox } from '../../../coordinator/boxes/move.ts'
import { createResizes, type Resizes } from '../../../coordinator/boxes/resize.ts'
import { type BoxService, createBoxService } from '../../../coordinator/boxes/service.ts'
import { createSnapshotService, type SnapshotService } from '../../../coordinator/boxes/snapshots/service.ts'
import { createSnapshots, type Snapshots } from '../../../coordinator/boxes/snapshots/snapshots.ts'
import type { Db } from '../../../coordinator/db/open.ts'
import type { Tables } from '../../../coordinator/db/schema.ts'
import type { Provider } from '../../../coordinator/providers/provider.ts'
import { createProviders } from '../../../coordinator/providers/regions.ts'
import { insertOnlyReplica } from '../../../coordinator/replicas/store.ts'
import { systemClock } from '../../../shared/clock.ts'
import { newId } from '../../../shared/ids.ts'
import type { Region } from '../../../shared/tiers.ts'
import { createTestAdmit } from '../admit.ts'
import { createTestBoxHooks } from '../box-hooks.ts'
import type { FakeInfrastructure } from '../fake-infrastructure.ts'
import { createFakeReplica } from '../replica.ts'
import type { KillablePoint } from './faults.ts'
import { createKillableDriver } from './killable-driver.ts'
import type { MemoryDatabase } from './memory-database.ts'

const silentLog = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
} as unknown as LifecycleOptions['log']

export type SimulatedCoordinator = {
  point: KillablePoint
  db: Db
  boxes: BoxService
  resizes: Resizes
  moveBox: MoveBox
  lifecycle: Lifecycle
  snapshots: Snapshots
  snapshotService: SnapshotService
  /** Starts the services. */
  start(): Promise<unknown>
}

export type SimulatedRegions = ReadonlyMap<Region, FakeInfrastructure>

/** Does not start the services. */
export function createSimulatedCoordinator(
  database: MemoryDatabase,
  regions: SimulatedRegions,
  point: KillablePoint,
  { finalSnapshots }: { finalSnapshots: boolean },
): SimulatedCoordinator {
  const db: Db = new Kysely<Tables>({
    dialect: { ...database.dialect, createDriver: () => createKillableDriver(database.driver, point) },
  })
  const [first] = regions.values()
  if (first === undefined) throw new Error('A simulation needs a region.')
  const providers = createProviders(
    new Map([...regions].map(([region, { provider }]) => [region, withFaults(provider, region, point)])),
  )
  const { tunnels } = first
  const replica = createFakeReplica(newId('replica'))
  const options = {
    db,
    replica,
    clock: systemClock,
    log: silentLog,
    providers,
  }
  const lifecycle = createLifecycle({
    ...options,
    coordinatorUrl: 'http://127.0.0.1:7070',
    tunnels,
    ingest: { apply: async () => undefined },
    disconnectGraceMs: 0,
  })
  const hooks = createTestBoxHooks(db)
  const { boxSecrets } = hooks
  const shared = {
    db,
    host: replica.host,
    clock: systemClock,
    boxSecrets,
    admit: createTestAdmit(),
    schedule: lifecycle.schedule,
  }
  const snapshots = createSnapshots({
    ...options,
    boxSecrets,
    scheduleBox: lifecycle.schedule,
    finalSnapshots,
  })
  lifecycle.onChange(snapshots.onBoxChange, { onGap: snapshots.onBoxChange })
  const boxes = createBoxService({
    ...shared,
    ...hooks,
    finder: createBoxFinder(db),
    regions: providers,
    isConnected: (boxId) => tunnels.current(boxId) !== undefined,
    latestHeartbeat: () => undefined,
    beforeDelete: snapshots.onBoxDelete,
  })
  return {
    point,
    db,
    async start() {
      const { id, host } = replica
      await insertOnlyReplica(db, { id, host, version: '1.0.0', name: null, url: null, settings: null })
      await Promise.all([lifecycle.start(), snapshots.start()])
    },
    boxes,
    lifecycle,
    snapshots,
    snapshotService: createSnapshotService({
      ...shared,
      boxes,
      providers,
      schedule: snapshots.schedule,
      loadPlanLimits: async () => ({ snapshots: 1000 }),
    }),
    resizes: createResizes({ ...shared, boxes, providers }),
    moveBox: createMoveBox({ ...shared, boxes, regions: providers }),
  }
}

/** Every call passes the fault point before and after it takes effect. */
function withFaults(provider: Provider, region: Region, point: KillablePoint): Provider {
  return new Proxy(provider, {
    get(target, property: keyof Provider) {
      const method = target[property]
      // A stream fails in the fake; the calls that read it pass the fault point.
      if (typeof method !== 'function' || ['readArchive', 'readSpool', 'describe'].includes(property))
        return method
      const name = `${property} in ${region}`
      return async (...args: unknown[]) => {
        await point.call(`${name} (before)`)
        const result = await (method as (...args: unknown[]) => Promise<unknown>).apply(target, args)
        await point.call(`${name} (after)`)
        return result
      }
    },
  })
}
