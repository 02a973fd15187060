// box cp: files and folders, to a box and from it.
import type { Command } from 'commander'
import { type End, parseEnd } from '../copy/ends.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { printJson } from '../output.ts'
import type { Run, Session } from '../session.ts'

export function addCp(program: Command, run: Run): void {
  program
    .command('cp')
    .summary('copy files and folders to and from a box')
    .description(
      'Copies a file or a folder to a box or from it, up to 1 GiB. As for cp -r: a destination that is a folder gets ' +
        'the source inside. A file or a new folder appears whole or not at all.',
    )
    .argument('<source>', 'a path here, NAME:path on a box, or - for stdin')
    .argument('<destination>', 'a path here, NAME:path on a box, or - for stdout')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box cp notes.md fig:                 into its home directory
  box cp notes.md fig:/tmp/copy.md
  box cp src fig:work                  the folder: work/src when work exists, else as work
  box cp src/. fig:work                what is in it
  box cp fig:work/out .                back
  pg_dump app | box cp - fig:app.sql   from a pipe
  box cp fig:work - | tar -t           a folder goes to a pipe as tar

A path on a box is absolute, or under the home directory. ./a:b is a file here. Modes are kept on the way to a box;
links inside a folder stay links. On a terminal a bar shows how far it is.`,
    )
    .action((source: string, destination: string, options: JsonOption) =>
      run((session) => copy(session, parseEnd(source), parseEnd(destination), options)),
    )
}

async function copy(session: Session, from: End, to: End, { json }: JsonOption): Promise<undefined> {
  if (to.where === 'box' && from.where !== 'box') {
    const edge = await session.client.edge(to.box)
    const { upload, uploadStdin } = await import('../copy/upload.ts')
    const sent = from.where === 'pipe' ? uploadStdin(edge, to.path) : upload(edge, from.path, to.path)
    const { path, size } = await sent
    if (json) printJson({ ok: true, type: 'file.uploaded', path, size })
  } else if (from.where === 'box' && to.where !== 'box') {
    const edge = await session.client.edge(from.box)
    const { download, downloadToStdout } = await import('../copy/download.ts')
    if (to.where === 'pipe') return downloadToStdout(edge, from.path, session.signal).then(() => undefined)
    const fetched = await download(edge, from.path, to.path, session.signal)
    if (json) printJson({ ok: true, type: 'file.downloaded', ...fetched })
  } else {
    const both = from.where === 'box' ? 'Both are on boxes: copy here first.' : 'Neither is on a box:'
    const todo = from.where === 'box' ? '' : ' write one of them as NAME:path.'
    throw new Failure(EXIT.usage, both + todo)
  }
}
