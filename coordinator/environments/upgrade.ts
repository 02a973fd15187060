// Pins the boxes of an environment to its latest version (spec §4.9).

import type { UpgradedEnvironment } from '../../shared/api/environments.ts'
import type { Clock } from '../../shared/clock.ts'
import type { BoxSecrets } from '../boxes/box-hooks.ts'
import { lockBoxesOfEnvironment } from '../boxes/lookups.ts'
import { restrictBox } from '../boxes/restrict-boxes.ts'
import { updateBox } from '../boxes/updates.ts'
import { recordVariableChange } from '../boxes/variable-changes.ts'
import type { Db } from '../db/open.ts'
import type { BoxRow } from '../db/schema.ts'
import { type Trx, transaction } from '../db/transaction.ts'
import type { Actor } from '../http/actor.ts'
import type { ModuleRegistry } from '../http/module.ts'
import { canSee } from '../http/visibility.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { assertOpen } from '../identity/workspaces/service.ts'
import { loadLatest, lockLive, record } from './change.ts'
import { type EnvironmentConfig, formatNames } from './config.ts'
import { setBoxRepos } from './delivery/box-repos.ts'

export type UpgradeOptions = {
  db: Db
  clock: Clock
  confirmActor: ConfirmActor
  modules: Pick<ModuleRegistry, 'restrictBox'>
  boxSecrets: Pick<BoxSecrets, 'onCreate'>
}

/**
 * Concerns the boxes that the actor sees, in every state. A running box gets the version at once, others at their next start. A box
 * becomes restricted with its environment, and never stops being it. Throws
 * not_found and workspace_closing.
 */
export type UpgradeEnvironment = (actor: Actor, id: string) => Promise<UpgradedEnvironment>

type SkipReason = UpgradedEnvironment['skipped'][number]['reason']
type Version = { no: number; config: EnvironmentConfig }

export function createUpgrade(options: UpgradeOptions): UpgradeEnvironment {
  const { db, clock, confirmActor, modules, boxSecrets } = options

  return (actor, id) =>
    transaction(db, async (trx) => {
      // Boxes are locked before the workspace and the environment.
      const locked = await lockBoxesOfEnvironment(trx, actor.workspaceId, id)
      const boxes = locked.filter(({ id: boxId, workspace_id: workspaceId, owner_user_id: ownerUserId }) =>
        canSee(actor, { workspaceId, boxId, ownerUserId }),
      )
      const now = clock.now()
      await confirmActor(trx, actor, now)
      const environment = await lockLive(trx, actor, id)
      await assertOpen(trx, actor.workspaceId)
      const version = { no: environment.latest_version_no, config: await loadLatest(trx, environment) }
      const result: UpgradedEnvironment = { upgraded: [], skipped: [], latestVersionNo: version.no }
      for (const box of boxes) {
        const { id: boxId, hostname, environment_version_no: versionNo } = box
        const upgraded = { boxId, hostname, versionNo: versionNo ?? 0 }
        const reason = findSkipReason(box, version.no)
        if (reason !== null) {
          result.skipped.push({ ...upgraded, reason })
          continue
        }
        await pinBox(trx, actor, box, version, now)
        recordVariableChange(trx, boxId)
        result.upgraded.push(upgraded)
      }
      if (result.upgraded.length > 0)
        record(trx, 'environment.upgrade', actor, environment, now, {
          versionNo: version.no,
          boxCount: result.upgraded.length,
          boxes: formatNames(result.upgraded.map(({ hostname }) => hostname)),
        })
      return result
    })

  async function pinBox(
    trx: Trx,
    actor: Actor,
    box: BoxRow,
    { no, config }: Version,
    now: number,
  ): Promise<void> {
    const { vars, repos, toggles } = config
    const written = await updateBox(trx, box.id, {
      environment_version_no: no,
      environment_vars: JSON.stringify(vars),
      updated_at: now,
    })
    if (toggles.restricted) await restrictBox(trx, modules, written, { actor, now, reason: 'environment' })
    else {
      const mountVars = await boxSecrets.onCreate(trx, written, { actor, carried: [], toggles })
      if (mountVars !== written.mount_vars) await updateBox(trx, box.id, { mount_vars: mountVars })
    }
    await setBoxRepos(trx, box, repos, now)
  }
}

function findSkipReason(box: BoxRow, latestVersionNo: number): SkipReason | null {
  if (box.desired_state === 'terminated') return 'terminating'
  if (box.observed_state === 'provision_failed') return 'box_failed'
  return box.environment_version_no === latestVersionNo ? 'up_to_date' : null
}
