// boxwood backup: writes a backup of the coordinator to a file.

import type { Command } from 'commander'
import { formatCount } from '../../../shared/format-count.ts'
import { formatBoxwoodName } from '../../base/project-directory.ts'
import { writeBackup } from '../backup/write-backup.ts'
import { readConfig } from './read-config.ts'

export function addBackupCommand(program: Command, signal: AbortSignal): void {
  program
    .command('backup <file>')
    .summary('write a backup to a file')
    .description(
      'Writes the database, the keys, the snapshots and the files of the boxes on this machine to FILE, a tar archive with checksums. ' +
        'Works while the coordinator runs. The backup has every change that the coordinator acknowledged before this ' +
        'command started. FILE contains secrets and has mode 0600.',
    )
    .option(
      '--without-boxes',
      'omit the files of boxes; running boxes are otherwise paused while they are read',
    )
    .action(async (file: string, { withoutBoxes = false }: { withoutBoxes?: boolean }) => {
      const written = await writeBackup(readConfig(), file, { includeBoxes: !withoutBoxes, signal })
      const { boxes, archives } = written.description
      const content = withoutBoxes
        ? `the rows but not the files of ${formatCount(boxes.omitted, 'box', 'boxes')}`
        : `the files of ${formatCount(boxes.included, 'box', 'boxes')}`
      const omitted = withoutBoxes ? archives.omitted : boxes.omitted + archives.omitted
      process.stdout.write(
        `Wrote ${written.file} (${formatBytes(written.bytes)}), with ${content}. ${describeOmitted(omitted)}Restore it with \`${formatBoxwoodName()} restore FILE\`.\n`,
      )
    })
}

/** Boxes that run in an engine, and archives that the engine stores or that are damaged. */
const describeOmitted = (count: number): string =>
  count === 0
    ? ''
    : `It does not have the files of ${count} other ${count === 1 ? 'box or snapshot' : 'boxes and snapshots'}: their engine stores them, or they are damaged (see the log). Keep the engine. `

const formatBytes = (bytes: number): string =>
  bytes < 1_000_000 ? `${Math.ceil(bytes / 1000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`
