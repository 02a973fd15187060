// box files: lists, inspects, moves and removes files of a box, and creates directories.
import { type Command, Option } from 'commander'
import type { FileEntry } from '../../shared/api/files.ts'
import {
  createIntegerParser,
  createJsonOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
} from '../arguments/options.ts'
import type { RunAction } from '../connection/session.ts'
import { createFileList, formatMode, formatName } from '../files/file-list.ts'
import { listEntries, statEntry } from '../files/requests.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatBytes } from '../output/format.ts'
import { print, printJson, sanitize } from '../output/print.ts'

const importChanges = () => import('../files/change-files.ts')

type Output = JsonOption & QuietOption

const addOutput = (command: Command): Command =>
  command.addOption(createQuietOption()).addOption(createJsonOption())

const DEFAULT_LIMIT = 10_000

export function addFilesCommand(program: Command, runAction: RunAction): void {
  const files = program
    .command('files')
    .alias('file')
    .summary('list, move or remove files of a box')
    .description(
      'Lists, inspects, moves and removes files of a box, and creates directories. A path is absolute, or relative to the home directory.',
    )
    // An option after a subcommand belongs to the subcommand.
    .enablePositionalOptions()
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box files ls fig
  box files ls fig src -o wide
  box files stat fig src/main.ts
  box files mkdir -p fig a/b/c
  box files mv fig notes.md docs
  box files rm -r fig build

\`box cp\` copies files to and from a box, \`box exec\` runs any other command.`,
    )
  addLs(files, runAction)
  addStat(files, runAction)
  addMkdir(files, runAction)
  addMv(files, runAction)
  addRm(files, runAction)
}

function addLs(files: Command, runAction: RunAction): void {
  const ls = files
    .command('ls')
    .alias('list')
    .summary('list a directory')
    .description('Lists a directory, with hidden files, in the order of the bytes of the names.')
    .argument('<name>', "the box's name or id")
    .argument('[path]', 'default: the home directory')
    .option(
      '--limit <number>',
      `list at most this many entries; default: ${DEFAULT_LIMIT}`,
      createIntegerParser('--limit', { min: 1, max: 10_000_000 }),
    )
  addListOptions(ls, 'the names', createFileList('').filters)
    .addHelpText(
      'after',
      `
Examples:
  box files ls fig
  box files ls fig /var/log -o wide
  box files ls fig --filter type=directory -q
  box files ls fig --json | jq '.entries[].size'

--filter name=TEXT matches a part of the name; with * or ? it matches the whole name.`,
    )
    .action((name: string, path: string | undefined, options: ListOptions & { limit?: number }) =>
      runAction(async ({ client, signal }) => {
        const { limit = DEFAULT_LIMIT } = options
        const edge = await client.createEdgeClient(name)
        const load = async () => {
          const { path: realPath, entries, isComplete } = await listEntries(edge, path ?? '~', limit)
          return {
            rows: entries,
            toJson: (shown: readonly FileEntry[]) => ({ path: realPath, entries: shown, isComplete }),
            note: isComplete ? null : `There are more entries. List them with --limit ${limit * 10}.`,
          }
        }
        return printList(createFileList(path ?? 'The home directory'), load, options, signal)
      }),
    )
}

function addStat(files: Command, runAction: RunAction): void {
  files
    .command('stat')
    .alias('show')
    .summary('show the attributes of a file')
    .description(
      'Shows the attributes of a file or a directory. Of a symbolic link, shows the link with its target.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<path>', 'absolute, or relative to the home directory')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      '\nExamples:\n  box files stat fig notes.md\n  box files stat fig /etc/hosts --json',
    )
    .action((name: string, path: string, { json }: JsonOption) =>
      runAction(async ({ client }) => {
        const result = await statEntry(await client.createEdgeClient(name), path)
        const { path: realPath, entry } = result
        if (json) return void printJson({ path: realPath, entry })
        const lines = [
          ['path', realPath],
          ['name', formatName(entry)],
          ['type', entry.type],
          ['size', `${entry.size} (${formatBytes(entry.size)})`],
          ['mode', `${entry.mode} ${formatMode(entry)}`],
          ['owner', `${entry.owner} (${entry.uid})`],
          ['group', `${entry.group} (${entry.gid})`],
          ['modified', entry.mtime ?? 'unknown'],
        ]
        for (const [label = '', value = ''] of lines) print(`${label.padEnd(10)}${sanitize(value)}`)
      }),
    )
}

function addMkdir(files: Command, runAction: RunAction): void {
  const mkdir = files
    .command('mkdir')
    .summary('create directories')
    .description('Creates directories.')
    .argument('<name>', "the box's name or id")
    .argument('<path...>', 'absolute, or relative to the home directory')
    .option('-p, --parents', 'create missing parents too, and accept directories that exist')
  addOutput(mkdir)
    .addHelpText('after', '\nExamples:\n  box files mkdir fig build\n  box files mkdir -p fig a/b/c')
    .action((name: string, paths: string[], options: Output & { parents?: boolean }) =>
      runAction(async (session) => (await importChanges()).makeDirectories(session, name, paths, options)),
    )
}

function addMv(files: Command, runAction: RunAction): void {
  const mv = files
    .command('mv')
    .aliases(['move', 'rename'])
    .summary('move or rename files')
    .description(
      'Moves or renames files and directories. Into the destination, when that is a directory. Replaces nothing without --force.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<path...>', 'the sources, then the destination')
    .usage('[options] <name> <source...> <destination>')
    .option('-f, --force', 'replace an existing file, or an existing empty directory')
  addOutput(mv)
    .addHelpText(
      'after',
      `
Examples:
  box files mv fig notes.md notes.txt
  box files mv fig a.txt b.txt docs

Between file systems: box exec fig -- mv SOURCE DESTINATION`,
    )
    .action((name: string, paths: string[], options: Output & { force?: boolean }) =>
      runAction(async (session) => (await importChanges()).moveEntries(session, name, paths, options)),
    )
}

function addRm(files: Command, runAction: RunAction): void {
  const rm = files
    .command('rm')
    .aliases(['remove', 'delete'])
    .summary('remove files')
    .description('Removes files and empty directories; with -r, directories with their content.')
    .argument('<name>', "the box's name or id")
    .argument('<path...>', 'absolute, or relative to the home directory')
    .option('-r, --recursive', 'remove directories with their content')
    .addOption(new Option('-R').hideHelp().implies({ recursive: true }))
    .option('-f, --force', 'ignore missing files')
  addOutput(rm)
    .addHelpText(
      'after',
      `
Examples:
  box files rm fig notes.md
  box files rm -r fig build

Symbolic links are not followed. The home directory and what contains it are not removed.`,
    )
    .action((name: string, paths: string[], options: Output & { recursive?: boolean; force?: boolean }) =>
      runAction(async (session) => (await importChanges()).removeEntries(session, name, paths, options)),
    )
}
