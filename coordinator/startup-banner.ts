// Formats the text that a start prints on the terminal.
import { existsSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { formatCommandName } from '../shared/command-name.ts'
import { shellQuote } from '../shared/shell-quote.ts'
import type { Coordinator } from './app.ts'
import { isWildcard } from './http/listen.ts'

const PROJECT_DIR = dirname(import.meta.dirname)
/** The data directory that the box command finds from every directory. */
const DEFAULT_DATA_DIR = join(PROJECT_DIR, '.boxwood')

/** Paths and commands can be pasted into a terminal in the directory from which the coordinator was started. */
export async function createStartupBanner(
  coordinator: Coordinator,
  userDir = getUserDirectory(),
): Promise<string> {
  const { url, dataDirectory, context } = coordinator
  const { config, provider, urls } = context
  const box = formatCommandName({ projectDir: PROJECT_DIR, cwd: userDir, path: process.env.PATH })
  const worksEverywhere = box !== './box' && dataDirectory.dir === DEFAULT_DATA_DIR
  const lines = [
    `Boxwood listens on ${urls.public === url ? url : `${url} (for clients: ${urls.public})`}.`,
    provider.describe(),
    `The owner's API key is in ${formatPath(dataDirectory.ownerKeyFile, userDir)}.`,
    ...(isWildcard(config.listen.host) && config.publicUrl === null
      ? ['To use it from other machines, set BOXWOOD_PUBLIC_URL to the URL at which they reach it.']
      : []),
    '',
    worksEverywhere ? 'In another terminal:' : 'In another terminal, in this directory:',
    `  ${formatDataVariable(dataDirectory.dir, userDir)}${box} ${await suggestCommand(coordinator)}`,
    ...(box === 'box' ? [] : ['', `\`${box} install\` puts \`box\` on your PATH.`]),
  ]
  return `${lines.join('\n')}\n`
}

/** The arguments of a `box` command to try. */
export async function suggestCommand({ context, owner }: Coordinator): Promise<string> {
  const boxes = owner ? await context.boxes.list(owner, { live: true }) : []
  const oldest = boxes.findLast(({ observedState }) => observedState !== 'provision_failed')
  return oldest ? `exec ${oldest.hostname} -- uname -a` : 'create'
}

/** npm starts a script in the project directory; INIT_CWD is the directory of the user. */
function getUserDirectory(): string {
  const { npm_lifecycle_event, INIT_CWD } = process.env
  return (npm_lifecycle_event === 'start' && INIT_CWD) || process.cwd()
}

/** Empty for a data directory that the box command finds by itself. */
function formatDataVariable(dir: string, userDir: string): string {
  const userDataDir = join(userDir, '.boxwood')
  const isFound = dir === userDataDir || (dir === DEFAULT_DATA_DIR && !existsSync(userDataDir))
  return isFound ? '' : `BOXWOOD_DATA=${shellQuote(formatPath(dir, userDir))} `
}

function formatPath(path: string, userDir: string): string {
  const relativePath = relative(userDir, path)
  return relativePath === '' || relativePath.startsWith('..') ? path : relativePath
}
