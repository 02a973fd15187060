// boxwood restore: restores a backup into an empty data directory.

import type { Command } from 'commander'
import { formatCount } from '../../../shared/format-count.ts'
import { openBackup } from '../backup/read.ts'
import { restoreOpenBackup } from '../backup/restore.ts'
import { formatBoxCommand } from '../box-command.ts'
import { becomeOwner } from './become-owner.ts'
import { readConfig } from './read-config.ts'

export function addRestoreCommand(program: Command, signal: AbortSignal): void {
  program
    .command('restore <file>')
    .summary('restore a backup into an empty data directory')
    .description(
      'Verifies FILE, and restores it into the data directory, which must be empty or new. With BOXWOOD_DATABASE_URL, ' +
        'the database is restored into this Postgres database, which must have no tables. On a failure nothing is ' +
        'restored. Stop the coordinator of which FILE is a backup: agents connect to one coordinator.',
    )
    .action(async (file: string) => {
      const config = readConfig()
      // The user of the data directory may not be permitted to read the backup.
      const backup = await openBackup(file)
      becomeOwner(config.dataDir)
      const { createdAt, boxes } = await restoreOpenBackup(config, backup, signal)
      await backup.handle.close()
      process.stdout.write(
        `Restored the backup of ${createdAt} to ${config.dataDir}. Start the coordinator with ${config.databaseUrl === null ? '' : 'the same BOXWOOD_DATABASE_URL and '}\`${formatBoxCommand(config.dataDir)} up\`.\n${
          boxes.omitted === 0
            ? ''
            : `The backup does not have the files of ${formatCount(boxes.omitted, 'box', 'boxes')}. A box whose engine still has it continues there; another one without a snapshot can only be deleted.\n`
        }`,
      )
    })
}
