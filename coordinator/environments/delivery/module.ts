// What environments do on boxes: secret files are written before a box is running and after an upgrade, and repositories are cloned
// in the background.

import type { Tunnel, Tunnels } from '../../agents/tunnel/types.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import type { BoxSecrets } from '../../boxes/box-hooks.ts'
import type { Lifecycle } from '../../boxes/lifecycle/lifecycle.ts'
import { findBox } from '../../boxes/lookups.ts'
import { updateBox } from '../../boxes/updates.ts'
import type { BoxVariableChanges } from '../../boxes/variable-sender.ts'
import { lockBox } from '../../db/lock-box.ts'
import { afterCommit, type Trx } from '../../db/transaction.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Environments } from '../types.ts'
import { createFileDelivery } from './deliver-files.ts'
import { createBoxRepoService } from './repo-service.ts'
import { boxRepoRoutes } from './routes.ts'
import { RepoSync } from './sync-repos.ts'

export type EnvironmentDeliveryModuleContext = ModuleBase & {
  tunnels: Tunnels
  boxFinder: BoxFinder
  lifecycle: Pick<Lifecycle, 'onChange'>
  boxEnvironments: Environments
  boxVariables: Pick<BoxVariableChanges, 'onChange' | 'subscribe' | 'whenSent'>
  boxSecrets: Pick<BoxSecrets, 'mountForRepo'>
}

export function environmentDeliveryModule(context: EnvironmentDeliveryModuleContext) {
  const { db, clock, log, tunnels, boxFinder, lifecycle, boxEnvironments, boxVariables, boxSecrets } = context
  const closing = new AbortController()
  const deliverFiles = createFileDelivery({ db, clock, log, tunnels, environments: boxEnvironments })
  const repoSync = new RepoSync({ db, clock, log, tunnels, boxSecrets, boxVariables })
  /** The boxes that have their files and are not running yet. */
  const starting = new Set<string>()

  /** A box that is not connected gets everything when its agent connects. */
  function applyChange(boxId: string): void {
    if (closing.signal.aborted || tunnels.current(boxId) === undefined) return
    deliverFiles(boxId, closing.signal).catch((err: unknown) => {
      if (!closing.signal.aborted)
        log.warn(
          { err, boxId },
          'failed to write the files of an environment; will retry when the agent connects',
        )
    })
    repoSync.schedule(boxId)
  }

  /** The repositories are cloned when the box is running. */
  async function onBoxChange(boxId: string): Promise<void> {
    if (!starting.has(boxId)) return
    const box = await findBox(db, boxId)
    if (box !== undefined && box.observed_state !== 'running' && box.desired_state === 'running') return
    starting.delete(boxId)
    repoSync.schedule(boxId)
  }

  const onConnected = ({ boxId }: Tunnel) => applyChange(boxId)
  tunnels.on('connected', onConnected)
  const unsubscribe = [
    boxVariables.subscribe(applyChange),
    lifecycle.onChange((boxId) => {
      onBoxChange(boxId).catch((err: unknown) =>
        log.error({ err, boxId }, 'failed to read a box that has started'),
      )
    }),
  ]

  return {
    routes: withTag(
      'Environments',
      boxRepoRoutes({
        repos: createBoxRepoService({
          db,
          clock,
          finder: boxFinder,
          schedule: repoSync.schedule.bind(repoSync),
        }),
      }),
    ),
    async prepareBox(boxId: string, signal: AbortSignal) {
      // An earlier delivery may wait for an agent that does not respond.
      await unlessAborted(deliverFiles(boxId, AbortSignal.any([signal, closing.signal])), signal)
      // Its first command can use the secrets that are mounted.
      await unlessAborted(boxVariables.whenSent(boxId), signal)
      starting.add(boxId)
    },
    /** The secret files are removed from the box. */
    async restrictBox(trx: Trx, boxId: string) {
      const box = await lockBox(trx, boxId)
      if (!box || box.applied_version_no === null) return
      const applied = { ...box, environment_version_no: box.applied_version_no }
      const paths = await boxEnvironments.listFilePaths(trx, applied)
      await updateBox(trx, boxId, { applied_version_no: null, stale_files: JSON.stringify(paths) })
      afterCommit(trx, () => applyChange(boxId))
    },
    close: {
      name: 'stop the delivery of environments',
      async run() {
        closing.abort()
        tunnels.off('connected', onConnected)
        for (const stop of unsubscribe) stop()
        await repoSync.close()
      },
    },
  } satisfies Module
}
