// box cp: copies files and directories to, from and between boxes.

import { type Command, Option } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction, Session } from '../connection/session.ts'
import type { CopyOptions } from '../copy/copy.ts'
import { type CopyPath, parseCopyPath } from '../copy/paths.ts'
import { restoreBytes } from '../copy/restore-bytes.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson } from '../output/print.ts'

type Options = JsonOption & CopyOptions

export function addCpCommand(program: Command, runAction: RunAction): void {
  program
    .command('cp')
    .summary('copy files and directories to, from and between boxes')
    .description(
      'Copies files and directories of any size to a box, from a box or from one box to another. If the destination is ' +
        'a directory, the sources are copied into it, as with cp -r. A file or a new directory appears complete or not ' +
        'at all. Wakes suspended boxes.',
    )
    .argument(
      '<path...>',
      'the sources, then the destination: local paths, BOX:PATH, or - for stdin and stdout',
    )
    .usage('[options] <source...> <destination>')
    .option('--mkpath', 'create missing directories of the destination, as rsync does')
    .option('-q, --quiet', 'show no progress')
    .option('-r, --recursive', 'accepted as in cp, without effect: directories are always copied')
    .addOption(new Option('-R').hideHelp())
    .option(
      '-p, --preserve',
      'accepted as in cp, without effect: modes and modification times are always kept',
    )
    .addOption(new Option('-a, --archive').hideHelp())
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box cp notes.md fig:                 to the home directory
  box cp notes.md fig:/tmp/copy.md
  box cp *.txt src fig:work            several sources: work must be a directory
  box cp src fig:work                  a directory: to work/src if work exists, else to work
  box cp src/. fig:work                only its contents
  box cp --mkpath a.txt fig:new/dir/   creates new/dir
  box cp fig:work/out .                from the box
  box cp fig: .                        the home directory, to ./fig
  box cp fig:data plum:                from one box to another, through this machine
  pg_dump app | box cp - fig:app.sql   from a pipe
  box cp fig:work - | tar -t           to a pipe: a directory is written as a tar archive

A path on a box is absolute, or relative to the home directory. A local file with a colon in its name is written ./a:b.
Names, permissions, times, symbolic and hard links inside a directory are kept; set-user-ID and similar bits are not. New
files on this machine follow the umask. FIFOs, sockets and devices inside a directory are skipped with a message, and
refused as a source. box docs cli-files lists what is kept.
If one of several sources fails, the others are still copied, and the exit code is that of the first failure.`,
    )
    .action((paths: string[], options: Options) =>
      runAction((session) => run(session, restoreBytes(paths).map(parseCopyPath), options)),
    )
}

async function run(session: Session, paths: CopyPath[], options: Options): Promise<number | undefined> {
  const destination = paths.at(-1)
  const sources = paths.slice(0, -1)
  if (destination === undefined || sources.length === 0)
    throw new CliError(EXIT.usage, `The destination is missing: ${boxCommand()} cp SOURCE... DESTINATION.`)
  const { copy } = await import('../copy/copy.ts')
  const { copied, failed } = await copy(session, { sources, destination, options })
  if (options.json && destination.type !== 'stdio')
    printJson({
      ok: failed.length === 0,
      copied,
      failed: failed.map(({ source, error }) => ({
        source,
        message: error.message,
        exitCode: error.exitCode,
      })),
    })
  return failed[0]?.error.exitCode
}
