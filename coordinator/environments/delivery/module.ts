// What environments do on boxes: secret files are written before a box is running and after an upgrade, and repositories are cloned
// in the background.

import type { Tunnel, Tunnels } from '../../agents/tunnel/types.ts'
import { unlessAborted } from '../../base/unless-aborted.ts'
import type { BoxSecrets } from '../../boxes/box-hooks.ts'
import type { Lifecycle } from '../../boxes/lifecycle/lifecycle.ts'
import { findBox } from '../../boxes/lookups.ts'
import { updateBox } from '../../boxes/updates.ts'
import { subscribeToVariableChanges } from '../../boxes/variable-changes.ts'
import type { VariableSender } from '../../boxes/variable-sender.ts'
import { lockBox } from '../../db/lock-box.ts'
import type { Trx } from '../../db/transaction.ts'
import type { BoxFinder } from '../../http/find-box.ts'
import type { Module, ModuleBase } from '../../http/module.ts'
import { withTag } from '../../http/route.ts'
import type { Environments } from '../types.ts'
import { createFileDelivery } from './deliver-files.ts'
import { type Delivery, recordDelivery, subscribeToDeliveries } from './delivery-changes.ts'
import { createBoxRepoService } from './repo-service.ts'
import { boxRepoRoutes } from './routes.ts'
import { RepoSync } from './sync-repos.ts'

export type EnvironmentDeliveryModuleContext = ModuleBase & {
  tunnels: Tunnels
  boxFinder: BoxFinder
  lifecycle: Pick<Lifecycle, 'onChange'>
  boxEnvironments: Environments
  boxVariables: Pick<VariableSender, 'whenSent'>
  boxSecrets: Pick<BoxSecrets, 'mountForRepo'>
}

export function environmentDeliveryModule(context: EnvironmentDeliveryModuleContext) {
  const { db, clock, log, tunnels, boxFinder, lifecycle, boxEnvironments, boxVariables, boxSecrets } = context
  const closing = new AbortController()
  const deliverFiles = createFileDelivery({ db, clock, log, tunnels, environments: boxEnvironments })
  const repoSync = new RepoSync({ db, clock, log, tunnels, boxSecrets, boxVariables })
  const connected = new Set<string>()
  /** The connected boxes that may not be running yet: their repositories are cloned when they are. */
  const starting = new Set<string>()

  /** A box that is not connected gets everything when its agent connects. */
  function applyChange(boxId: string): void {
    if (closing.signal.aborted || tunnels.local(boxId) === undefined) return
    deliverFiles(boxId, closing.signal).catch((err: unknown) => {
      if (!closing.signal.aborted)
        log.warn(
          { err, boxId },
          'failed to write the files of an environment; will retry when the agent connects',
        )
    })
    repoSync.schedule(boxId)
  }

  function onDelivery({ boxId, content }: Delivery): void {
    if (content === 'repos') repoSync.schedule(boxId)
    else applyChange(boxId)
  }

  function checkStart(boxId: string): void {
    onBoxChange(boxId).catch((err: unknown) =>
      log.error({ err, boxId }, 'failed to read a box that has started'),
    )
  }

  async function onBoxChange(boxId: string): Promise<void> {
    if (!starting.has(boxId)) return
    const box = await findBox(db, boxId)
    if (box !== undefined && box.observed_state !== 'running' && box.desired_state === 'running') return
    starting.delete(boxId)
    repoSync.schedule(boxId)
  }

  const onConnected = ({ boxId }: Tunnel) => {
    connected.add(boxId)
    // Another coordinator may have prepared the box.
    starting.add(boxId)
    applyChange(boxId)
  }
  const onDisconnected = (boxId: string) => {
    connected.delete(boxId)
    starting.delete(boxId)
  }
  tunnels.on('connected', onConnected)
  tunnels.on('disconnected', onDisconnected)
  const onGap = () => connected.forEach(applyChange)
  const unsubscribe = [
    subscribeToVariableChanges(db, applyChange, { onGap }),
    subscribeToDeliveries(db, onDelivery, { onGap }),
    lifecycle.onChange(checkStart, { onGap: () => starting.forEach(checkStart) }),
  ]

  return {
    routes: withTag(
      'Environments',
      boxRepoRoutes({
        repos: createBoxRepoService({ db, clock, finder: boxFinder }),
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
      recordDelivery(trx, { boxId, content: 'files' })
    },
    close: {
      name: 'stop the delivery of environments',
      async run() {
        closing.abort()
        tunnels.off('connected', onConnected)
        tunnels.off('disconnected', onDisconnected)
        for (const stop of unsubscribe) stop()
        await repoSync.close()
      },
    },
  } satisfies Module
}
