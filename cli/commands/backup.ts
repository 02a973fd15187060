// box backup: writes a backup of the coordinator on this machine to a file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import type { RunLocalAction } from '../connection/session.ts'
import { requireLocal, selectCoordinator } from '../local/select-coordinator.ts'
import { EXIT, signalExitCode } from '../output/exit-codes.ts'
import { PROJECT_DIR } from '../project-directory.ts'

export function addBackupCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('backup')
    .summary('write a backup of the coordinator to a file')
    .description(
      'Writes the database, the keys, the snapshots and the files of the boxes on this machine to a file, as `boxwood backup` ' +
        'does. Works while the coordinator runs. The file contains secrets. `boxwood restore FILE` restores it.',
    )
    .argument('<file>', 'the new file, a tar archive')
    .option('--without-boxes', 'omit the files of boxes')
    .addHelpText(
      'after',
      `
Examples:
  box backup boxwood.tar
  BOXWOOD_DATA=/srv/boxwood boxwood restore boxwood.tar

For the files of a single box: box snapshot NAME`,
    )
    .action((file: string, options: { withoutBoxes?: boolean }) =>
      runLocalAction(async (signal) => {
        const { dataDir } = requireLocal(selectCoordinator(process.env, process.cwd()), 'backed up')
        return runBackup(dataDir, [...(options.withoutBoxes ? ['--without-boxes'] : []), '--', file], signal)
      }),
    )
}

/** Returns the exit code of `boxwood backup`, which removes an incomplete file when it is terminated. */
async function runBackup(dataDir: string, args: string[], signal: AbortSignal): Promise<number> {
  const child = spawn(join(PROJECT_DIR, 'boxwood'), ['backup', ...args], {
    stdio: 'inherit',
    env: { ...process.env, BOXWOOD_DATA: dataDir },
  })
  const terminate = () => child.kill()
  signal.addEventListener('abort', terminate, { once: true })
  const [code, exitSignal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null]
  signal.removeEventListener('abort', terminate)
  signal.throwIfAborted()
  if (exitSignal !== null) return signalExitCode(constants.signals[exitSignal])
  return code ?? EXIT.failed
}
