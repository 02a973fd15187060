// The module of boxes (spec §4.3): the requests on them, and the deletion of their rows.

import type { Admit } from '../admission/admit.ts'
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { BoxFinder } from '../http/find-box.ts'
import type { Module, ModuleBase, ModuleRegistry } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import type { Providers } from '../providers/regions.ts'
import { isElsewhere } from '../replicas/hosts.ts'
import type { Replica } from '../replicas/replica.ts'
import type { WarmMachines } from '../warm-machines/pool.ts'
import type { BoxEnvironments, BoxSecrets } from './box-hooks.ts'
import type { DeletionHook } from './change-state.ts'
import { createGiveBox } from './give.ts'
import type { Heartbeats } from './lifecycle/heartbeats.ts'
import type { Lifecycle } from './lifecycle/lifecycle.ts'
import { createMoveBox } from './move.ts'
import { pruneBoxes } from './prune.ts'
import { createResizes } from './resize.ts'
import { boxRoutes } from './routes.ts'
import { type BoxService, createBoxService } from './service.ts'
import type { BoxSettings } from './settings.ts'

export type BoxesModuleContext = ModuleBase & {
  config: BoxSettings
  modules: Pick<ModuleRegistry, 'deleteOfBox' | 'restrictBox'>
  boxFinder: BoxFinder
  admit: Admit
  confirmActor: ConfirmActor
  providers: Providers
  replica: Pick<Replica, 'host'>
  tunnels: Tunnels
  heartbeats: Pick<Heartbeats, 'latest'>
  lifecycle: Pick<Lifecycle, 'schedule'>
  snapshots: { onBoxDelete: DeletionHook }
  portShares: { onBoxDelete: DeletionHook }
  boxEnvironments: BoxEnvironments
  boxSecrets: BoxSecrets & { onBoxDelete: DeletionHook }
  warmMachines: WarmMachines
}

export function boxesModule(context: BoxesModuleContext) {
  const { config, db, clock, modules, boxFinder, admit, providers, tunnels, confirmActor } = context
  const { host } = context.replica
  const { heartbeats, lifecycle, snapshots, portShares, boxEnvironments, boxSecrets, warmMachines } = context
  const { schedule } = lifecycle
  const { deleteOfBox } = modules
  const boxes: BoxService = createBoxService({
    db,
    finder: boxFinder,
    clock,
    host,
    admit,
    regions: providers,
    boxEnvironments,
    boxSecrets,
    warmMachines,
    getCapacity: (box) => (isElsewhere(box, host) ? undefined : providers.byRegion.get(box.region)?.capacity),
    schedule,
    isConnected: (boxId) => tunnels.current(boxId) !== undefined,
    latestHeartbeat: heartbeats.latest,
    async beforeDelete(...deletion) {
      await portShares.onBoxDelete(...deletion)
      // The final snapshot has the mounts of the box.
      await snapshots.onBoxDelete(...deletion)
      await boxSecrets.onBoxDelete(...deletion)
    },
  })
  const changes = { db, clock, boxes, admit, schedule }
  const retentionDays = config.deletedBoxDays
  return {
    services: { boxes },
    routes: withTag(
      'Boxes',
      boxRoutes({
        boxes,
        resizes: createResizes({ ...changes, host, providers }),
        moveBox: createMoveBox({ ...changes, regions: providers }),
        giveBox: createGiveBox({ ...changes, confirmActor, modules, boxSecrets }),
      }),
    ),
    schedules: {
      pruners: {
        boxes: (signal: AbortSignal) => pruneBoxes({ db, clock, retentionDays, deleteOfBox }, signal),
      },
    },
  } satisfies Module
}
