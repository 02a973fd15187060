// The variables of boxes at their agents. A module before those whose requests change the variables.
import type { Tunnels } from '../agents/tunnel/types.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { createEnvironmentSender, type EnvironmentSender } from './environment-sender.ts'
import { listSecretFiles } from './environments/delivery/list-secret-files.ts'
import { createBrokerSettings } from './secrets/broker-settings.ts'
import type { WorkspaceAuthorities } from './secrets/types.ts'

export type BoxEnvironmentChanges = Pick<EnvironmentSender, 'getBrokerTest' | 'whenSent'> & {
  /** Call it after the commit of a change of what a box gets from its environment, its variables or its mounts. */
  onChange(boxId: string): void
  /** The listener is called after each change. Returns a function that removes it. */
  subscribe(listener: (boxId: string) => void): () => void
}

export type BoxEnvironmentModuleContext = ModuleBase & {
  tunnels: Tunnels
  workspaceAuthorities: Pick<WorkspaceAuthorities, 'getCertificate'>
}

export function boxEnvironmentModule(context: BoxEnvironmentModuleContext) {
  const { db, clock, log, tunnels, workspaceAuthorities: authorities } = context
  const findBroker = createBrokerSettings({ db, authorities })
  const sender = createEnvironmentSender({
    ...{ db, clock, tunnels, log, findBroker },
    listSecretFiles: (boxId) => listSecretFiles(db, boxId),
  })
  const listeners = new Set<(boxId: string) => void>()
  const boxEnvironment: BoxEnvironmentChanges = {
    getBrokerTest: sender.getBrokerTest,
    whenSent: sender.whenSent,
    onChange(boxId) {
      sender.onChange(boxId)
      for (const listener of listeners) listener(boxId)
    },
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  return {
    services: { boxEnvironment },
    close: { name: 'stop sending the variables of boxes', run: sender.close },
  } satisfies Module
}
