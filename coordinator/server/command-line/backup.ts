// boxwood backup: writes a backup of the coordinator to a file.

import type { Command } from 'commander'
import { systemClock } from '../../../shared/clock.ts'
import { formatCount } from '../../../shared/format-count.ts'
import { formatBoxwoodName } from '../../base/project-directory.ts'
import { type WrittenBackup, writeBackup } from '../backup/write-backup.ts'
import { createProgressReport, formatBytes } from './backup-progress.ts'
import { readConfig } from './read-config.ts'

/** Without a terminal too, so that a log shows that the backup continues. */
const PROGRESS_INTERVAL_MS = 10_000

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
      const written = await writeWithProgress(file, { includeBoxes: !withoutBoxes, signal })
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

/** Prints a line on stderr now and then: a backup of many boxes takes minutes. */
async function writeWithProgress(
  file: string,
  options: { includeBoxes: boolean; signal: AbortSignal },
): Promise<WrittenBackup> {
  const report = createProgressReport(systemClock)
  const timer = setInterval(() => {
    const line = report.describe()
    if (line !== null) process.stderr.write(`${line}\n`)
  }, PROGRESS_INTERVAL_MS)
  try {
    return await writeBackup(readConfig(), file, { ...options, onProgress: report.update })
  } finally {
    clearInterval(timer)
  }
}

/** Boxes that run in an engine, and archives that the engine stores or that are damaged. */
const describeOmitted = (count: number): string =>
  count === 0
    ? ''
    : `It does not have the files of ${count} other ${count === 1 ? 'box or snapshot' : 'boxes and snapshots'}: their engine stores them, or they are damaged (see the log). Keep the engine. `
