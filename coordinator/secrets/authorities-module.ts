// The certificate authorities of workspaces.
import type { Keyring } from '../base/sealing/keyring.ts'
import type { Module, ModuleBase } from '../http/module.ts'
import { createWorkspaceAuthorities } from './authorities.ts'

export function authoritiesModule({ db, clock, keyring }: ModuleBase & { keyring: Keyring }) {
  return {
    services: { workspaceAuthorities: createWorkspaceAuthorities({ db, clock, keyring }) },
    workspaceTables: [{ table: 'workspace_authorities', key: null }],
    sealedColumns: [{ table: 'workspace_authorities', id: 'workspace_id', value: 'private_key' }],
  } satisfies Module
}
