// box cp: copies files and directories to and from a box.
import type { Command } from 'commander'
import { type CopyPath, parseCopyPath } from '../copy/paths.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { printJson, sanitize } from '../output.ts'
import type { RunAction, Session } from '../session.ts'

export function addCpCommand(program: Command, runAction: RunAction): void {
  program
    .command('cp')
    .summary('copy files and directories to and from a box')
    .description(
      'Copies a file or a directory to or from a box, up to 1 GiB. If the destination is a directory, the source is ' +
        'copied into it, as with cp -r. A file or a new directory appears complete or not at all.',
    )
    .argument('<source>', 'a local path, BOX:PATH, or - for stdin')
    .argument('<destination>', 'a local path, BOX:PATH, or - for stdout')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box cp notes.md fig:                 to the home directory
  box cp notes.md fig:/tmp/copy.md
  box cp src fig:work                  a directory: to work/src if work exists, else to work
  box cp src/. fig:work                only its contents
  box cp fig:work/out .                from the box
  pg_dump app | box cp - fig:app.sql   from a pipe
  box cp fig:work - | tar -t           to a pipe: a directory is written as a tar archive

A path on a box is absolute, or relative to the home directory. Write a local file with a colon in its name as ./a:b.
File modes are kept, except when a single file is downloaded. Symbolic links inside a directory stay links. On a
terminal a progress bar is shown.`,
    )
    .action((source: string, destination: string, options: JsonOption) =>
      runAction((session) => copy(session, parseCopyPath(source), parseCopyPath(destination), options)),
    )
}

async function copy(
  session: Session,
  from: CopyPath,
  to: CopyPath,
  { json }: JsonOption,
): Promise<undefined> {
  if (to.type === 'box' && from.type !== 'box') {
    const edge = await session.client.createEdgeClient(to.boxName)
    const { upload, uploadStdin } = await import('../copy/upload.ts')
    const { path, size } = await (from.type === 'stdio'
      ? uploadStdin(edge, to.path)
      : upload(edge, from.path, to.path))
    if (json) printJson({ ok: true, type: 'file.uploaded', path, size })
  } else if (from.type === 'box' && to.type !== 'box') {
    const edge = await session.client.createEdgeClient(from.boxName)
    const { download, downloadToStdout } = await import('../copy/download.ts')
    if (to.type === 'stdio') return downloadToStdout(edge, from.path, session.signal).then(() => undefined)
    const result = await download(edge, from.path, to.path, session.signal)
    if (json) printJson({ ok: true, type: 'file.downloaded', ...result })
  } else if (from.type === 'box') {
    const source = sanitize(`${from.boxName}:${from.path}`)
    throw new CliError(
      EXIT.usage,
      `Copying between boxes is not supported. Copy ${source} to this machine first. (For a local file, write ./${source}.)`,
    )
  } else
    throw new CliError(
      EXIT.usage,
      'Either the source or the destination must be on a box: BOX:PATH, such as fig:notes.md.',
    )
}
