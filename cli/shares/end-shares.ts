// Ends links: by box and port, by id, by address, or all of them.
import type { PortShare } from '../../shared/api/port-shares.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { loadBoxShares, loadShares, revokeShare } from './requests.ts'

export type UnshareOptions = JsonOption & QuietOption & { all?: boolean; yes?: boolean }

/** Returns the exit code. @param typed the name of a box, or a link; undefined with --all: every link */
export async function endShares(
  { client, signal }: Session,
  typed: string | undefined,
  port: number | undefined,
  options: UnshareOptions,
): Promise<number> {
  const { all = false, yes, json = false, quiet } = options
  const shares = await selectShares(client, typed, port, all)
  const names = shares.map(({ hostname, port }) => `${sanitize(hostname)} ${port}`).join(', ')
  const mustAsk = typed === undefined && !yes && canAsk(json)
  if (mustAsk && shares.length > 0 && !(await confirm(`End the links of ${names}?`, signal))) {
    printMessage('no link was ended.')
    return EXIT.failed
  }
  if (shares.length === 0 && !json && !quiet) printStderr('No ports are shared.')
  for (const { id, hostname, port } of shares) {
    await revokeShare(client, id)
    if (json) printJson({ id, hostname, port, revoked: true })
    else if (!quiet) printStderr(`${sanitize(hostname)} ${port}: the link is ended`)
  }
  return EXIT.ok
}

/** @throws CliError when nothing matches */
async function selectShares(
  client: Client,
  typed: string | undefined,
  port: number | undefined,
  isAll: boolean,
): Promise<PortShare[]> {
  if (typed === undefined) {
    if (isAll) return (await loadShares(client)).shares
    throw new CliError(
      EXIT.usage,
      'Type the box and the port: `box unshare NAME PORT`. `box shares` lists the links.',
    )
  }
  const link = port === undefined && !isAll ? await findLink(client, typed) : undefined
  if (link !== undefined) return [link]
  const { id, hostname } = await client.findBox(typed)
  const { shares } = await loadBoxShares(client, id)
  if (isAll) return shares
  const matching = shares.filter((share) => port === undefined || share.port === port)
  if (matching.length === 1) return matching
  if (matching.length === 0)
    throw new CliError(
      EXIT.notFound,
      `${port === undefined ? 'No port' : `Port ${port}`} of ${hostname} is ${port === undefined ? '' : 'not '}shared. \`box shares ${hostname}\` lists the links.`,
      { code: 'no_such_share' },
    )
  const lines = matching.map((share) => `\n  \`box unshare ${hostname} ${share.port}\``)
  throw new CliError(
    EXIT.usage,
    `${hostname} has ${matching.length} links. Type one of:${lines.join('')}\n  \`box unshare ${hostname} --all\``,
  )
}

/** Finds a link by its address, its host name, its slug, its id or a unique prefix of its id. undefined: not one of these. */
async function findLink(client: Client, typed: string): Promise<PortShare | undefined> {
  const isAddress = /[:./]/.test(typed)
  const { shares } = await loadShares(client)
  if (!isAddress)
    return (
      shares.find(({ slug }) => slug === typed) ??
      findByPrefix(
        shares.filter(({ id }) => typed.length >= MIN_PREFIX_LENGTH || id === typed),
        typed,
        {
          getId: ({ id }) => id,
          describe: ({ hostname, port }) => `${hostname} ${port}`,
          kind: 'links',
        },
      )
    )
  const host = parseHost(typed)
  const found = shares.find(({ origin }) => host !== null && parseHost(origin) === host)
  if (found !== undefined) return found
  throw new CliError(EXIT.notFound, `No such link: '${sanitize(typed)}'. \`box shares\` lists the links.`, {
    code: 'no_such_share',
  })
}

/** Below it, a name is more likely that of a box. */
const MIN_PREFIX_LENGTH = 8

/** The host name of an address with or without a scheme; null: not an address. */
function parseHost(text: string): string | null {
  try {
    return new URL(text.includes('://') ? text : `http://${text}`).hostname
  } catch {
    return null
  }
}
