// box open: opens the page of the coordinator, of a box, or a port of a box, in a browser.
import type { Command } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { findCoordinator, getRootUrl } from '../connection/find-coordinator.ts'
import { openSession, type RunLocalAction, type Session } from '../connection/session.ts'
import { createSignInLink, openSignInLink } from '../login/sign-in-link.ts'
import { openUrl } from '../output/open-url.ts'
import { printJson } from '../output/print.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'
import { parsePort } from '../shares/ports.ts'

export function addOpenCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('open')
    .summary('open the page of the coordinator or of a box, or a port, in a browser')
    .description(
      'Opens the page of the coordinator in a browser with xdg-open, and prints its URL. On the machine of the coordinator, the ' +
        'URL signs in the owner: once, within 15 minutes. Without a display, and without xdg-open, only prints the URL. With the name of a box, opens the page of the box. With a port too, opens that port of ' +
        'the box; a port that is not shared is shared with the members of the workspace first.',
    )
    .argument('[name]', "the box's name or id")
    .argument('[port]', 'a port of the box', parsePort)
    .addOption(createJsonOption('print the URL as JSON, and open nothing'))
    .addHelpText(
      'after',
      `
Examples:
  box open               # the dashboard
  box open fig
  box open fig 3000
  curl $(box open --json | jq -r .url)openapi.json`,
    )
    .action((name: string | undefined, port: number | undefined, options: JsonOption) =>
      runLocalAction(async (signal) => {
        if (name === undefined) return openCoordinator(options, signal)
        const session = openSession(signal)
        if (port === undefined) return openBox(session, name, options)
        const { openPort } = await import('../shares/share-port.ts')
        return openPort(session, name, port, options)
      }),
    )
}

/** The page asks for a sign-in when the browser has none. */
async function openBox(
  { client, coordinator }: Session,
  name: string,
  options: JsonOption,
): Promise<undefined> {
  const { hostname } = await client.findBox(name)
  return openPage(`${getRootUrl(coordinator.baseUrl)}/boxes/${encodeURIComponent(hostname)}`, options)
}

async function openCoordinator(options: JsonOption, signal: AbortSignal): Promise<undefined> {
  const { baseUrl } = findCoordinator(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  const url = `${getRootUrl(baseUrl)}/`
  const link = await createSignInLink(signal)
  if (options.json) printJson({ url, ...(link && { signInUrl: link.url, signInExpiresAt: link.expiresAt }) })
  else if (link) await openSignInLink(link)
  else await openUrl(url)
}

async function openPage(url: string, { json }: JsonOption): Promise<undefined> {
  if (json) printJson({ url })
  else await openUrl(url)
}
