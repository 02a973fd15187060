// Shares a port of a box, and opens it in a browser.
import type { Box } from '../../shared/api/boxes.ts'
import type {
  CreatePortShareRequest,
  CreatePortShareResponse,
  PortAudience,
  PortShare,
  PortShares,
} from '../../shared/api/port-shares.ts'
import type { JsonOption, QuietOption } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { isSuspended } from '../output/box-state.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatAge } from '../output/format.ts'
import { hasDisplay, openInBrowser } from '../output/open-in-browser.ts'
import { print, printJson, printMessage, printStderr, sanitize } from '../output/print.ts'
import { describeAudience, describeMachine } from './describe-share.ts'
import { selectPort } from './ports.ts'
import { assertAllowed, createOpenLink, createShare, loadBoxShares, revokeShare } from './requests.ts'

export type ShareOptions = JsonOption &
  QuietOption & {
    access?: PortAudience
    /** Minutes. */
    expires?: number
    rewriteHost?: boolean
    /** End the link of the port first. */
    new?: boolean
    open?: boolean
    /** Say that the port had no link before: the user has not asked for one. */
    namesNewLink?: boolean
  }

type Result = CreatePortShareResponse & {
  box: Box
  /** The link of the port before. */
  existing: PortShare | undefined
  listening: PortShares['listening']
}

/** Prints the address on stdout, and everything else on stderr. @param typedPort undefined: the only listening port */
export async function sharePort(
  { client, coordinator, signal }: Session,
  boxName: string,
  typedPort: number | undefined,
  options: ShareOptions,
): Promise<undefined> {
  const result = await share(client, boxName, typedPort, options)
  const { share: link, replaced } = result
  const { json, quiet, open } = options
  if (json) printJson({ share: link, ...(replaced !== undefined && { replaced }) })
  else if (link.url !== null) print(sanitize(link.url))
  else assertSettingChanged(result)
  if (!json && !quiet)
    for (const note of describeResult(result, options, coordinator.baseUrl)) printMessage(note)
  if (open) await openLink(client, link)
  else if (!json && !quiet && link.access === 'members') await printOpenLink(client, link, signal)
}

/** Opens a port in a browser, and shares it with the members first if it has no link. */
export async function openPort(
  session: Session,
  boxName: string,
  port: number,
  { json }: JsonOption,
): Promise<undefined> {
  if (!json) return sharePort(session, boxName, port, { open: true, namesNewLink: true })
  const { share: link } = await share(session.client, boxName, port, {})
  printJson({ url: await getOpenUrl(session.client, link) })
}

async function share(
  client: Client,
  boxName: string,
  typedPort: number | undefined,
  { access, expires, rewriteHost, new: isNew = false }: ShareOptions,
): Promise<Result> {
  const box = await client.findBox(boxName)
  const before = await loadBoxShares(client, box.id)
  const port = typedPort ?? selectPort(box.hostname, before.listening)
  const existing = before.shares.find((candidate) => candidate.port === port)
  const kept = isNew ? existing : undefined
  const audience = access ?? kept?.access
  const isHostRewritten = rewriteHost ?? kept?.rewriteHost
  const request: CreatePortShareRequest = {
    port,
    ...(audience !== undefined && { access: audience }),
    ...(expires !== undefined && { expiresIn: expires * 60 }),
    ...(isHostRewritten !== undefined && { rewriteHost: isHostRewritten }),
  }
  if (expires !== undefined && (audience ?? 'members') === 'members')
    throw new CliError(
      EXIT.usage,
      'A link for members does not expire. Use --expires with --anyone or --public.',
    )
  if (isNew && existing !== undefined) {
    assertAllowed(before.modes, request, existing)
    await revokeShare(client, existing.id)
  }
  return { ...(await createShare(client, box, request)), box, existing, listening: before.listening }
}

const isUnchanged = ({ share: link, existing }: Result): boolean => link.id === existing?.id

/** @throws CliError when the only thing that the user gets is an address without its secret */
function assertSettingChanged(result: Result): void {
  const { share: link, existing } = result
  if (existing === undefined || !isUnchanged(result) || existing.rewriteHost === link.rewriteHost)
    throw createSecretError(link)
}

const createSecretError = ({ hostname, port, createdAt }: PortShare): CliError =>
  new CliError(
    EXIT.failed,
    `Port ${port} of ${hostname} has a link for anyone since ${formatAge(createdAt, Date.now())}. Its secret was shown only when the link was created. \`box share ${hostname} ${port} --new\` replaces it by a new link; so does \`box unshare ${hostname} ${port}\` before \`box share\`.`,
    { code: 'share_secret_unknown' },
  )

/** Sentences for the user. */
function describeResult(
  result: Result,
  { expires, namesNewLink }: ShareOptions,
  coordinatorUrl: string,
): string[] {
  const { share: link, existing, box } = result
  const isSettingChanged = isUnchanged(result) && existing?.rewriteHost !== link.rewriteHost
  return [
    namesNewLink && existing === undefined
      ? `Created a link to port ${link.port} of ${link.hostname}, which had none.`
      : null,
    link.url === null ? null : describeAudience(link, Date.now()),
    existing === undefined || isUnchanged(result)
      ? null
      : `It replaces the link for ${existing.access}, which does not work any more.`,
    isSettingChanged ? `The link is the same. ${describeHost(link)}` : null,
    isUnchanged(result) && expires !== undefined
      ? 'The port had this link already, and its expiry is unchanged. --new replaces it by a new link.'
      : null,
    describeMachine(link, coordinatorUrl),
    describeServer(box, result),
  ].filter((text) => text !== null)
}

const describeHost = ({ rewriteHost, port }: PortShare): string =>
  rewriteHost
    ? `The server gets \`localhost:${port}\` as Host and Origin.`
    : 'The server gets the host name of the link as Host.'

/** What a visitor gets when no server responds; null: a server listens, or the ports are not known. */
function describeServer(
  { hostname, observedState }: Box,
  { share: { access, port }, listening }: Pick<Result, 'share' | 'listening'>,
): string | null {
  if (isSuspended(observedState))
    return access === 'members'
      ? `${hostname} is suspended. The page of the link wakes it; so does \`box wake ${hostname}\`.`
      : `${hostname} is suspended: the link shows a page that says so. Start it with \`box wake ${hostname}\`.`
  if (listening === null || listening.ports.some((listener) => listener.port === port)) return null
  return `Nothing listens on port ${port} of ${hostname} yet. The page of the link reloads itself when a server does.`
}

async function getOpenUrl(client: Client, link: PortShare): Promise<string> {
  const url = link.access === 'members' ? (await createOpenLink(client, link.id)).url : link.url
  if (url === null) throw createSecretError(link)
  return sanitize(url)
}

async function openLink(client: Client, link: PortShare): Promise<void> {
  const url = await getOpenUrl(client, link)
  if (!hasDisplay()) printMessage('No display and xdg-open here: open the link in a browser.')
  else if (await openInBrowser(url)) return
  else printMessage('xdg-open failed. Open the link in a browser.')
  if (url !== link.url) printOpenUrl(url)
}

/** The port is shared also when the coordinator refuses this link. */
async function printOpenLink(client: Client, link: PortShare, signal: AbortSignal): Promise<void> {
  try {
    printOpenUrl(await getOpenUrl(client, link))
  } catch (error) {
    if (!(error instanceof CliError) || signal.aborted) throw error
    printMessage(`There is no link that opens it without signing in: ${error.message}`)
  }
}

function printOpenUrl(url: string): void {
  printMessage('This link opens it as you without signing in, once, in the next 10 minutes:')
  printStderr(url)
}
