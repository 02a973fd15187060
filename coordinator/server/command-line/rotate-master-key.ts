// boxwood rotate-master-key: adds a master key.
import type { Command } from 'commander'
import { addMasterKey, locateKeyFile, readKeyFile } from '../../base/sealing/key-file.ts'
import { StartError } from '../../base/start-error.ts'
import { hasData } from '../backup/offline.ts'
import { becomeOwner } from './become-owner.ts'
import { readConfig } from './read-config.ts'

export function addRotateMasterKeyCommand(program: Command): void {
  program
    .command('rotate-master-key')
    .summary('add a new master key')
    .description(
      'Adds a new master key to the file master-keys of the data directory. From its next start on, the coordinator ' +
        'encrypts secrets with this key, and encrypts the keys of the stored ones with it in the background. Its log ' +
        'says when an old key is not used any more. A file of BOXWOOD_MASTER_KEYS is not changed.',
    )
    .action(async () => {
      const config = readConfig()
      const { dataDir } = config
      const file = locateKeyFile(config)
      if (file.isMounted)
        throw new StartError(
          `Boxwood does not write ${file.path}, the file of BOXWOOD_MASTER_KEYS. Add a line with a new key before the others; \`box docs master-keys\` describes its form.`,
        )
      if (!hasData(dataDir))
        throw new StartError(`${dataDir} is not the data directory of a coordinator. Set BOXWOOD_DATA to it.`)
      becomeOwner(dataDir)
      const content = await readKeyFile(file)
      if (content === null)
        throw new StartError(`${file.path} does not exist. The next start of the coordinator creates it.`)
      const id = await addMasterKey(file, content.text)
      process.stdout.write(
        `Added the master key ${id} to ${file.path}. Restart the coordinator, which then uses it. Keep the other lines until its log says that they are not used any more.\n`,
      )
    })
}
