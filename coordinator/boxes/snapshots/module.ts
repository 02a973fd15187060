// Snapshots have two modules, because the box service needs their jobs: snapshotJobsModule is created before it, and
// snapshotsModule, with the requests on snapshots, after it.

import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Replica } from '../../replicas/replica.ts'
import type { Lifecycle } from '../lifecycle/lifecycle.ts'
import type { BoxSettings } from '../settings.ts'
import { boxSnapshotRoutes, snapshotRoutes } from './routes.ts'
import { createSnapshotService, type SnapshotService, type SnapshotServiceOptions } from './service.ts'
import { createSnapshots, type Snapshots, type SnapshotsOptions } from './snapshots.ts'

export type SnapshotJobsModuleContext = ModuleBase & { config: BoxSettings } & Pick<
    SnapshotsOptions,
    'providers' | 'boxSecrets' | 'replica'
  > & {
    lifecycle: Pick<Lifecycle, 'schedule' | 'onChange'>
    overrides: { lifecycle?: Partial<Pick<SnapshotsOptions, 'backoff'>> }
  }

/** This limit is higher than that of snapshots.close(). */
const CLOSE_MS = 15_000

export function snapshotJobsModule(context: SnapshotJobsModuleContext) {
  const { config, db, clock, log, replica, providers, lifecycle, boxSecrets, overrides } = context
  const snapshots: Snapshots = createSnapshots({
    ...overrides.lifecycle,
    db,
    clock,
    log,
    replica,
    providers,
    boxSecrets,
    scheduleBox: lifecycle.schedule,
    finalSnapshots: config.finalSnapshots,
  })
  lifecycle.onChange(snapshots.onBoxChange, { onGap: snapshots.onBoxChange })
  return {
    services: { snapshots },
    schedules: {
      handlers: { expire_snapshot: snapshots.expireSnapshot },
      pruners: { snapshots: snapshots.prune },
    },
    workspaceTables: [{ table: 'snapshots', key: 'id' }],
    start: snapshots.start,
    close: { name: 'interrupt the jobs of snapshots', run: snapshots.close, timeoutMs: CLOSE_MS },
  } satisfies Module
}

export type SnapshotsModuleContext = ModuleBase &
  Pick<SnapshotServiceOptions, 'boxes' | 'boxSecrets' | 'providers' | 'admit' | 'loadPlanLimits'> & {
    snapshots: Pick<Snapshots, 'schedule'>
    replica: Pick<Replica, 'host'>
  }

export function snapshotsModule(context: SnapshotsModuleContext) {
  const { db, clock, boxes, boxSecrets, providers, admit, loadPlanLimits } = context
  const { schedule } = context.snapshots
  const snapshots: SnapshotService = createSnapshotService({
    db,
    clock,
    host: context.replica.host,
    boxes,
    boxSecrets,
    providers,
    admit,
    schedule,
    loadPlanLimits,
  })
  return {
    routes: [
      ...withTag('Boxes', boxSnapshotRoutes({ snapshots })),
      ...withTag('Snapshots', snapshotRoutes({ snapshots })),
    ],
  } satisfies Module
}
