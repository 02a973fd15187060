// Formats the text that a start prints on the terminal.
import { relative, resolve } from 'node:path'
import type { Coordinator } from './app.ts'
import { isWildcard } from './http/listen.ts'

/** Paths and commands can be pasted into a terminal in the current directory. */
export async function createStartupBanner(coordinator: Coordinator): Promise<string> {
  const { url, dataDirectory, context } = coordinator
  const { config, provider, urls } = context
  const lines = [
    `Boxwood listens on ${urls.public === url ? url : `${url} (for clients: ${urls.public})`}.`,
    provider.describe(),
    `The owner's API key is in ${formatPath(dataDirectory.ownerKeyFile)}.`,
    ...(isWildcard(config.listen.host) && config.publicUrl === null
      ? ['To use it from other machines, set BOXWOOD_PUBLIC_URL to the URL at which they reach it.']
      : []),
    '',
    'In another terminal, in this directory:',
    `  ${formatDataVariable(dataDirectory.dir)}npx box ${await suggestCommand(coordinator)}`,
  ]
  return `${lines.join('\n')}\n`
}

/** The arguments of a `box` command to try. */
export async function suggestCommand({ context, owner }: Coordinator): Promise<string> {
  const boxes = owner ? await context.boxes.list(owner, { live: true }) : []
  const oldest = boxes.findLast(({ observedState }) => observedState !== 'provision_failed')
  return oldest ? `exec ${oldest.hostname} -- uname -a` : 'create'
}

/** Empty for `.boxwood`, which the box command finds by itself. */
const formatDataVariable = (dir: string): string =>
  dir === resolve('.boxwood') ? '' : `BOXWOOD_DATA=${quoteForShell(formatPath(dir))} `

function formatPath(path: string): string {
  const relativePath = relative(process.cwd(), path)
  return relativePath === '' || relativePath.startsWith('..') ? path : relativePath
}

const quoteForShell = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
