// Deletes what is not kept: closed workspaces, and the stored content of workspaces with zero data retention.

import type { DeletionHook } from '../boxes/change-state.ts'
import type { Lifecycle } from '../boxes/lifecycle/lifecycle.ts'
import { listBoxPositions } from '../boxes/list-positions.ts'
import { deleteAllBoxes, removeAllBoxes } from '../boxes/remove-all.ts'
import type { Snapshots } from '../boxes/snapshots/snapshots.ts'
import type { Module, ModuleBase, ModuleRegistry } from '../http/module.ts'
import type { Providers } from '../providers/regions.ts'
import { createErasure } from './erasure.ts'
import { createPurge } from './purge.ts'

export type RetentionModuleContext = ModuleBase & {
  modules: Pick<ModuleRegistry, 'listWorkspaceTables' | 'deleteOfBox'>
  providers: Pick<Providers, 'all'>
  snapshots: Pick<Snapshots, 'removeAll'>
  lifecycle: Pick<Lifecycle, 'schedule'>
  portShares: { onBoxDelete: DeletionHook }
}

export function retentionModule(context: RetentionModuleContext): Module {
  const { db, clock, log, modules, providers, snapshots, lifecycle, portShares } = context
  const { listWorkspaceTables, deleteOfBox } = modules
  const purge = createPurge({
    db,
    clock,
    log,
    listWorkspaceTables,
    removeBoxes: (...args) =>
      removeAllBoxes(
        { db, clock, schedule: lifecycle.schedule, beforeDelete: portShares.onBoxDelete },
        ...args,
      ),
    removeSnapshots: snapshots.removeAll,
    async removeArchives(workspaceId) {
      for (const provider of providers.all) await provider.removeArchives(workspaceId)
    },
    deleteBoxRows: (...args) => deleteAllBoxes({ db, deleteOfBox }, ...args),
  })
  const erasure = createErasure({ db, listBoxes: (...args) => listBoxPositions(db, ...args) })
  return { schedules: { handlers: { purge_workspace: purge, erase: erasure.handleSchedule } } }
}
