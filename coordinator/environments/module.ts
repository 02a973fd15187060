// Environments (spec §2.12, §4.9): what new boxes start with.
import type { Keyring } from '../base/sealing/keyring.ts'
import type { BoxSecrets } from '../boxes/box-hooks.ts'
import type { Trx } from '../db/transaction.ts'
import type { Module, ModuleBase, ModuleRegistry } from '../http/module.ts'
import { withTag } from '../http/route.ts'
import type { ConfirmActor } from '../identity/confirm-actor.ts'
import { createEnvironments } from './box-environments.ts'
import { deleteReposOfBox } from './delivery/box-repos.ts'
import { createEnvironmentFiles } from './files.ts'
import { pruneEnvironments } from './prune.ts'
import { environmentRoutes } from './routes.ts'
import { createEnvironmentService } from './service.ts'
import { createUpgrade } from './upgrade.ts'

export type EnvironmentsModuleContext = ModuleBase & {
  keyring: Keyring
  modules: Pick<ModuleRegistry, 'restrictBox'>
  confirmActor: ConfirmActor
  boxSecrets: Pick<BoxSecrets, 'onCreate'>
}

export function environmentsModule(context: EnvironmentsModuleContext) {
  const { db, clock, keyring, modules, confirmActor, boxSecrets } = context
  const files = createEnvironmentFiles(keyring)
  return {
    services: { boxEnvironments: createEnvironments({ db, clock, files }) },
    routes: withTag(
      'Environments',
      environmentRoutes({
        environments: createEnvironmentService({ db, clock, files, confirmActor }),
        upgrade: createUpgrade({ db, clock, confirmActor, modules, boxSecrets }),
      }),
    ),
    schedules: {
      pruners: { environments: (signal: AbortSignal) => pruneEnvironments({ db, clock }, signal) },
    },
    workspaceTables: [
      { table: 'environments', key: 'id' },
      { table: 'environment_versions', key: 'environment_id' },
      { table: 'environment_files', key: 'id' },
    ],
    sealedColumns: [{ table: 'environment_files', id: 'id', value: 'content' }],
    deleteOfBox: (trx: Trx, boxId: string) => deleteReposOfBox(trx, boxId),
  } satisfies Module
}
