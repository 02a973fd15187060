// The variables of boxes at their agents. A module before those whose requests change the variables.
import type { Tunnels } from '../agents/tunnel/types.ts'
import { createVariableSender, type VariableSender } from '../boxes/variable-sender.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { createBrokerSettings } from '../secrets/broker-settings.ts'
import type { WorkspaceAuthorities } from '../secrets/types.ts'
import { listSecretFiles } from './delivery/list-secret-files.ts'

export type BoxVariableModuleContext = ModuleBase & {
  tunnels: Tunnels
  workspaceAuthorities: Pick<WorkspaceAuthorities, 'getCertificate'>
}

export function boxVariableModule(context: BoxVariableModuleContext) {
  const { db, clock, log, tunnels, workspaceAuthorities: authorities } = context
  const findBroker = createBrokerSettings({ db, authorities })
  const sender: VariableSender = createVariableSender({
    ...{ db, clock, tunnels, log, findBroker },
    listSecretFiles: (boxId) => listSecretFiles(db, boxId),
  })
  return {
    services: { boxVariables: sender },
    close: { name: 'stop sending the variables of boxes', run: sender.close },
  } satisfies Module
}
