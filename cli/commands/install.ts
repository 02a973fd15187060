// box install: puts `box` and `boxwood` on the PATH, with shell completion. box uninstall: removes both.
import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { findOnPath, isSameFile } from '../../shared/command-name.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson } from '../output/print.ts'
import { DEFAULT_DATA_PARENT, IS_NPM_PACKAGE, PROJECT_DIR } from '../project-directory.ts'

type DirOption = { dir?: string }

export function addInstallCommands(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('install')
    .summary('put the box and boxwood commands on the PATH')
    .description(
      'Creates links to `box` and to `boxwood`, the command of the coordinator, in ~/.local/bin or another directory of your home that is on the PATH; for root ' +
        'in /usr/local/bin. Also installs the completion for bash and fish; for root also for zsh. Prints the lines to add ' +
        'to the startup file of your shell, if any are needed. Can be repeated.',
    )
    .option('--dir <directory>', 'create the links in this directory')
    .option('--force', 'replace another program of the same name')
    .addOption(createJsonOption())
    .addHelpText('after', '\nExamples:\n  ./box install\n  ./box install --dir ~/bin')
    .action((options: DirOption & JsonOption & { force?: boolean }) => runLocalAction(() => install(options)))
  program
    .command('uninstall')
    .summary('remove the box and boxwood commands from the PATH')
    .description(
      'Removes the links and the completion files that `box install` has created, and prints what it keeps: the coordinator, the ' +
        'data directory with the boxes, and your sign-ins. Stop the coordinator with `box down` first.',
    )
    .option(
      '--dir <directory>',
      'remove the links in this directory (default: in each directory of the PATH)',
    )
    .addOption(createJsonOption())
    .action((options: DirOption & JsonOption) => runLocalAction(() => uninstall(options)))
}

async function install({ dir, force = false, json }: DirOption & JsonOption & { force?: boolean }) {
  requireCheckout('install')
  const { createLink, getDefaultDir, getScript, listPathDirs, PROGRAMS, SYSTEM_BIN_DIR } = await import(
    '../install/link.ts'
  )
  const { writeCompletionFiles } = await import('../install/completion-files.ts')
  const { getCompletionLine, getPathLine, getUserShell } = await import('../install/shell-startup.ts')
  const linkDir = resolve(dir ?? getDefaultDir())
  const links = PROGRAMS.map((program) => {
    const link = join(linkDir, program)
    const script = getScript(program)
    return { program, link, script, wasInstalled: isSameFile(link, script) }
  })
  for (const { program, link } of links) createLink(program, link, force)
  const completions = writeCompletionFiles(linkDir === SYSTEM_BIN_DIR)
  const found = findOnPath('box', process.env.PATH)
  const isOnPath = isSameFile(found, getScript('box'))
  if (json) {
    printJson({
      link: join(linkDir, 'box'),
      target: getScript('box'),
      links: links.map(({ link, script }) => ({ link, target: script })),
      onPath: isOnPath,
      completions: completions.map(({ path }) => path),
    })
    return undefined
  }
  for (const { link, script, wasInstalled } of links)
    print(`${link} ${wasInstalled ? 'is already' : 'is now'} a link to ${script}.`)
  for (const { shell, path } of completions) print(`Completion for ${shell}: ${path}`)
  if (!listPathDirs().some((pathDir) => resolve(pathDir) === linkDir)) {
    const { file, line } = getPathLine(linkDir)
    print(`\n${linkDir} is not on your PATH. Add this line to ${file} and start a new shell:\n  ${line}`)
  } else if (!isOnPath)
    print(`\nYour PATH finds ${found} first. Remove this file, or put ${linkDir} first on your PATH.`)
  const completionLine = getCompletionLine()
  if (completionLine !== null && !completions.some(({ shell }) => shell === getUserShell()))
    print(`\nFor completion, add this line to ${completionLine.file}:\n  ${completionLine.line}`)
  return undefined
}

async function uninstall({ dir, json }: DirOption & JsonOption) {
  requireCheckout('uninstall')
  const { getDefaultDir, removeLinks, SYSTEM_BIN_DIR } = await import('../install/link.ts')
  const { removeCompletionFiles } = await import('../install/completion-files.ts')
  const links = removeLinks(dir)
  const isSystem = resolve(dir ?? getDefaultDir()) === SYSTEM_BIN_DIR
  const removed = [
    ...links,
    ...removeCompletionFiles(false),
    ...(isSystem ? removeCompletionFiles(true) : []),
  ]
  const kept = await listKept()
  if (json) {
    printJson({ removed, kept: kept.map(({ path }) => path) })
    return undefined
  }
  if (removed.length === 0)
    print('Nothing is installed: no directory of the PATH has a link to this program.')
  else for (const path of removed) print(`Removed ${path}.`)
  for (const { path, content } of kept) print(`Kept ${path}: ${content}.`)
  return undefined
}

/** What an uninstallation leaves to be removed by hand. */
async function listKept(): Promise<{ path: string; content: string }[]> {
  const { getProfilePath } = await import('../connection/profile-file.ts')
  const { listDataDirs } = await import('../connection/find-coordinator.ts')
  const dataDirs = listDataDirs(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  return [
    {
      path: dirname(getProfilePath(process.env)),
      content: 'your sign-ins and the SSH key of `box ssh-config`',
    },
    ...[...new Set(dataDirs)].map((path) => ({
      path,
      content: 'the data directory of a coordinator, with its boxes',
    })),
    { path: PROJECT_DIR, content: 'this program' },
  ].filter(({ path }) => existsSync(path))
}

/** @throws CliError when npm has installed the package, and the link */
function requireCheckout(command: 'install' | 'uninstall'): void {
  if (!IS_NPM_PACKAGE) return
  const instead =
    command === 'install' ? 'It is on the PATH already.' : 'Remove it with `npm uninstall -g boxwood-server`.'
  throw new CliError(EXIT.failed, `npm has installed this program in ${PROJECT_DIR}. ${instead}`)
}
