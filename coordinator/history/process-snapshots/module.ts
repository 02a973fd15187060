// The processes of a box at any minute (spec §4.3).
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import { createProcessSnapshots, type ProcessSnapshots } from './process-snapshots.ts'
import { processSnapshotRoutes } from './routes.ts'

export function processSnapshotsModule({ db, clock, log, boxFinder }: ModuleBase & { boxFinder: BoxFinder }) {
  const processSnapshots: ProcessSnapshots = createProcessSnapshots({ db, clock, log, boxes: boxFinder })
  return {
    services: { processSnapshots },
    routes: withTag('Boxes', processSnapshotRoutes(processSnapshots)),
    schedules: { pruners: { process_snapshots: processSnapshots.prune } },
    deleteOfBox: processSnapshots.deleteOfBox,
  } satisfies Module
}
