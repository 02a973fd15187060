// The master keys of a running coordinator: checks them at the start, and uses a new one for the stored values.
import type { Module, ModuleBase, ModuleRegistry } from '../../http/module.ts'
import { checkMasterKeys } from './check.ts'
import type { MasterKeys } from './open-master-keys.ts'
import { rewrapOldValues } from './rewrap.ts'

export type MasterKeysModuleContext = ModuleBase & {
  masterKeys: MasterKeys
  modules: Pick<ModuleRegistry, 'listSealedColumns'>
}

export function masterKeysModule({ db, log, masterKeys, modules }: MasterKeysModuleContext) {
  const { keyring } = masterKeys
  const stopping = new AbortController()
  let rewrapping = Promise.resolve()
  return {
    services: { keyring },
    prepare: () => checkMasterKeys({ db, columns: modules.listSealedColumns(), masterKeys }),
    async start() {
      const columns = modules.listSealedColumns()
      rewrapping = rewrapOldValues({ db, keyring, columns, log, signal: stopping.signal }).catch((err) =>
        log.error({ err }, 'failed to use the new master key for all values; the next start tries again'),
      )
    },
    close: {
      name: 'stop the use of a new master key',
      async run() {
        stopping.abort()
        await rewrapping
      },
    },
  } satisfies Module
}
