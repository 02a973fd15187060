// A lifecycle service with snapshots that tests can restart without closing it, as after kill -9.
import type { Test } from 'tap'
import type { Lifecycle } from '../../coordinator/boxes/lifecycle/lifecycle.ts'
import { createSnapshotService, type SnapshotService } from '../../coordinator/boxes/snapshots/service.ts'
import {
  createSnapshots,
  type Snapshots,
  type SnapshotsOptions,
} from '../../coordinator/boxes/snapshots/snapshots.ts'
import type { Db } from '../../coordinator/db/open.ts'
import { type Providers, serveAllRegions } from '../../coordinator/providers/regions.ts'
import type { Snapshot } from '../../shared/api/snapshots.ts'
import { type Clock, systemClock } from '../../shared/clock.ts'
import { createTestAdmit } from './admit.ts'
import { NO_BOX_SECRETS } from './box-hooks.ts'
import type { FakeInfrastructure } from './fake-infrastructure.ts'
import { startOnlyReplica, TEST_HOST } from './replica.ts'
import { createRestartableLifecycle } from './restartable-lifecycle.ts'

const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

export type SnapshotsTestOptions = {
  finalSnapshots?: boolean
  clock?: Clock
  /** Default: the infrastructure has the machines of all regions. */
  createProviders?: (infra: FakeInfrastructure) => Providers
}

export async function createRestartableSnapshots(t: Test, db: Db, options: SnapshotsTestOptions = {}) {
  const { finalSnapshots = false, clock = systemClock } = options
  let current: (Snapshots & { service: SnapshotService }) | undefined
  const getSnapshots = () => {
    if (current === undefined) throw new Error('start() has not been called')
    return current
  }
  const base = await createRestartableLifecycle(t, db, {
    beforeDelete: (...args) => getSnapshots().onBoxDelete(...args),
  })
  const { infra, owner, boxes, startLifecycle, waitFor, waitForState } = base
  const providers = options.createProviders?.(infra) ?? serveAllRegions(infra.provider)

  /** Starts a new lifecycle service and its snapshots. The previous ones are not closed, as after kill -9. */
  async function start(): Promise<Lifecycle> {
    const replica = await startOnlyReplica(db)
    const lifecycle = await startLifecycle({ providers, replica })
    const snapshots = createSnapshots({
      db,
      replica,
      clock,
      log: silentLog as unknown as SnapshotsOptions['log'],
      providers,
      boxSecrets: NO_BOX_SECRETS,
      scheduleBox: lifecycle.schedule,
      backoff: () => 1,
      finalSnapshots,
    })
    const service = createSnapshotService({
      db,
      clock,
      host: TEST_HOST,
      boxes,
      boxSecrets: NO_BOX_SECRETS,
      providers,
      admit: createTestAdmit(),
      schedule: snapshots.schedule,
      loadPlanLimits: async () => ({ snapshots: 100 }),
    })
    current = { ...snapshots, service }
    lifecycle.onChange(snapshots.onBoxChange, { onGap: snapshots.onBoxChange })
    await snapshots.start()
    return lifecycle
  }
  t.teardown(() => current?.close())

  async function createRunningBox(files = 'content'): Promise<string> {
    const { id } = await boxes.create(owner, {})
    await waitForState(id, 'running')
    infra.setFiles(id, files)
    return id
  }

  const list = (): Promise<Snapshot[]> => getSnapshots().service.list(owner, { includeTransient: true })

  async function waitForStatus(id: string, status: Snapshot['status']): Promise<Snapshot | undefined> {
    await waitFor(`snapshot ${id} to become ${status}`, async () =>
      (await list()).some((snapshot) => snapshot.id === id && snapshot.status === status),
    )
    return (await list()).find((snapshot) => snapshot.id === id)
  }

  /** Waits until no job of a snapshot is left. */
  const waitForJobs = () =>
    waitFor('the jobs of snapshots', async () => {
      const jobs = await db.selectFrom('snapshot_jobs').selectAll().execute()
      return jobs.length === 0
    })

  return { ...base, start, getSnapshots, createRunningBox, list, waitForStatus, waitForJobs }
}

export type RestartableSnapshots = Awaited<ReturnType<typeof createRestartableSnapshots>>
