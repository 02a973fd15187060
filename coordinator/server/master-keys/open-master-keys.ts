// Reads the master keys at the start, and creates them at the first start.

import { createMasterKey, type KeyFile, locateKeyFile, readKeyFile } from '../../base/sealing/key-file.ts'
import type { Keyring } from '../../base/sealing/keyring.ts'
import { createKeyring } from '../../base/sealing/master-keyring.ts'
import { StartError } from '../../base/start-error.ts'
import type { Config } from '../config.ts'

export type MasterKeys = {
  file: KeyFile
  keyring: Keyring
  /** Writes the file when it did not exist. Called before the first value is encrypted. */
  store(): Promise<void>
}

/** Throws StartError. */
export async function openMasterKeys(
  config: Pick<Config, 'dataDir' | 'masterKeysFile'>,
): Promise<MasterKeys> {
  const file = locateKeyFile(config)
  const content = await readKeyFile(file)
  if (content !== null) return { file, keyring: createKeyring(content.keys), store: async () => undefined }
  if (file.isMounted)
    throw new StartError(
      `The file of the master keys ${file.path} does not exist. Mount it; \`box docs master-keys\` describes its form.`,
    )
  const created = createMasterKey(file)
  return { file, keyring: createKeyring([created.key]), store: created.store }
}
