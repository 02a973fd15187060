// What a start says to the person at the terminal.
import { relative, resolve } from 'node:path'
import type { Coordinator } from './app.ts'
import { isWildcard } from './http/listen.ts'

/** Paths and commands are as the person can paste them into a terminal in the same folder. */
export async function greeting(coordinator: Coordinator): Promise<string> {
  const { url, folder, context } = coordinator
  const { config, provider, urls } = context
  const lines = [
    `Boxwood listens on ${urls.public === url ? url : `${url}, for its clients ${urls.public}`}.`,
    provider.describe(),
    `The owner's API key is in ${shown(folder.ownerKey)}.`,
    ...(isWildcard(config.listen.host) && config.publicUrl === null
      ? ['Other machines need to be told an address: set BOXWOOD_PUBLIC_URL to it.']
      : []),
    '',
    'In another terminal, in this folder:',
    `  ${environment(folder.dir)}npx box ${await suggestion(coordinator)}`,
  ]
  return `${lines.join('\n')}\n`
}

async function suggestion({ context, owner }: Coordinator): Promise<string> {
  const boxes = owner ? await context.boxes.list(owner, { live: true }) : []
  const oldest = boxes.findLast(({ observedState }) => observedState !== 'provision_failed')
  return oldest ? `exec ${oldest.hostname} -- uname -a` : 'create'
}

/** The box command looks into .boxwood by itself. */
const environment = (dir: string): string =>
  dir === resolve('.boxwood') ? '' : `BOXWOOD_DATA=${quoted(shown(dir))} `

function shown(path: string): string {
  const short = relative(process.cwd(), path)
  return short === '' || short.startsWith('..') ? path : short
}

const quoted = (text: string): string =>
  /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
