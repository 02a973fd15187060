// box desktop: starts, stops and shows the desktop of a box.
import { type Command, Option } from 'commander'
import type { DesktopStarted, DesktopStatus, DesktopStopped } from '../../shared/api/desktop.ts'
import { DESKTOP_MODES } from '../../shared/field-values.ts'
import { LIMITS } from '../../shared/limits.ts'
import { createIntegerParser, createJsonOption, type JsonOption } from '../arguments/options.ts'
import { getRootUrl } from '../connection/find-coordinator.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { parseSize, type Size } from '../desktop/parse-size.ts'
import { openUrl } from '../output/open-url.ts'
import { print, printJson, printStderr } from '../output/print.ts'

type Mode = (typeof DESKTOP_MODES)[number]
type ModeOption = { mode: Mode }
type StartOptions = JsonOption & ModeOption & { size?: Size; dpi?: number; url?: string; open?: boolean }

const { dpi, width, height } = LIMITS.desktop

export function addDesktopCommand(program: Command, runAction: RunAction): void {
  const desktop = program
    .command('desktop')
    .summary('start, stop and show the desktop of a box')
    .description(
      'Shows the state of the desktop of a box. The mode `desktop` is a window manager with a terminal, and the mode ' +
        '`browser` is Chromium on the whole screen. Both share one display, which a browser shows on the page that ' +
        '`box desktop open` opens.',
    )
    .usage('<name> | <command> <name>')
    .helpCommand(false)
    .addHelpText(
      'after',
      `
Examples:
  box desktop install fig                            installs what is missing, or prints how
  box desktop start fig                              prints the address of the page
  box desktop start fig --mode browser --url https://example.com --open
  box desktop open fig
  box desktop stop fig
  box exec -e DISPLAY=:0 -e XAUTHORITY=FILE fig xterm

FILE is the authority that \`box desktop fig\` prints.`,
    )
  addStatus(desktop, runAction)
  addStart(desktop, runAction)
  addStop(desktop, runAction)
  addInstall(desktop, runAction)
  addOpen(desktop, runAction)
}

const createModeOption = () =>
  new Option('--mode <mode>', 'desktop, or browser').choices(DESKTOP_MODES).default('desktop')

const addName = (command: Command): Command => command.argument('<name>', "the box's name or id")

const getPageUrl = ({ coordinator }: Session, name: string): string =>
  `${getRootUrl(coordinator.baseUrl)}/desktop?box=${encodeURIComponent(name)}`

function addStatus(desktop: Command, runAction: RunAction): void {
  addName(desktop.command('status', { isDefault: true }))
    .summary('show the programs and the session (default)')
    .description('Shows which programs of the desktop are installed on the box, and what is running.')
    .addOption(createJsonOption())
    .action((name: string, options: JsonOption) =>
      runAction(async (session) => {
        const edge = await session.client.createEdgeClient(name)
        const status = await edge.requestJson<DesktopStatus>('GET', '/desktop')
        if (options.json) return void printJson(status)
        const { formatStatus } = await import('../desktop/format-status.ts')
        for (const line of formatStatus(status, edge.boxName, getPageUrl(session, edge.boxName))) print(line)
      }),
    )
}

function addStart(desktop: Command, runAction: RunAction): void {
  addName(desktop.command('start'))
    .summary('start the desktop, or Chromium')
    .description(
      'Starts a mode, and prints the address of the page that shows it. Wakes a suspended box. A mode that is running ' +
        'continues unchanged; the size is that of the first start.',
    )
    .addOption(createModeOption())
    .option(
      '--size <size>',
      `width and height in pixels (default: ${width.default}x${height.default})`,
      parseSize,
    )
    .option('--dpi <dpi>', `dots per inch (default: ${dpi.default})`, createIntegerParser('--dpi', dpi))
    .option('--url <url>', 'the page that Chromium opens')
    .option('--open', 'open the page in a browser')
    .addOption(createJsonOption())
    .action((name: string, options: StartOptions) =>
      runAction((session) => startDesktop(session, name, options)),
    )
}

async function startDesktop(
  session: Session,
  name: string,
  { mode, size, dpi, url, open, json }: StartOptions,
): Promise<undefined> {
  const edge = await session.client.createEdgeClient(name)
  const body = { mode, ...size, ...(dpi !== undefined && { dpi }), ...(url !== undefined && { url }) }
  const started = await edge.requestJson<DesktopStarted>('POST', '/desktop/start', body)
  if (json) return void printJson(started)
  const { display, width, height } = started.session
  const state = started.alreadyRunning ? 'is running' : 'has started'
  printStderr(`The ${mode} of ${edge.boxName} ${state}: display ${display}, ${width}x${height}.`)
  const page = getPageUrl(session, edge.boxName)
  if (open) await openUrl(page)
  else print(page)
}

function addStop(desktop: Command, runAction: RunAction): void {
  addName(desktop.command('stop'))
    .summary('terminate the processes of the desktop')
    .description(
      'Terminates the desktop with the browser, or with `--mode browser` only Chromium. Does not wake a suspended box.',
    )
    .addOption(createModeOption())
    .addOption(createJsonOption())
    .action((name: string, { mode, json }: JsonOption & ModeOption) =>
      runAction(async ({ client }) => {
        const edge = await client.createEdgeClient(name)
        const stopped = await edge.requestJson<DesktopStopped>('DELETE', `/desktop?mode=${mode}`)
        if (json) return void printJson(stopped)
        const result = stopped.wasRunning ? 'has stopped' : 'was not running'
        printStderr(`The ${mode} of ${edge.boxName} ${result}.`)
      }),
    )
}

function addInstall(desktop: Command, runAction: RunAction): void {
  addName(desktop.command('install'))
    .summary('install the missing programs, or print how')
    .description(
      'Installs the Debian packages that a mode needs on an enrolled machine, as root or with passwordless sudo. A local ' +
        'box uses the programs of the machine of the coordinator: for it, prints the line to run there.',
    )
    .addOption(createModeOption())
    .action((name: string, { mode }: ModeOption) =>
      runAction(async (session) => {
        const { installDesktop } = await import('../desktop/install-desktop.ts')
        return installDesktop(session, name, mode)
      }),
    )
}

function addOpen(desktop: Command, runAction: RunAction): void {
  addName(desktop.command('open'))
    .summary('open the page that shows the desktop in a browser')
    .description('Prints the address of the page, and opens it with xdg-open. The page needs a sign-in.')
    .addOption(createJsonOption('print the URL as JSON, and open nothing'))
    .action((name: string, { json }: JsonOption) =>
      runAction(async (session) => {
        const { hostname } = await session.client.findBox(name)
        const url = getPageUrl(session, hostname)
        if (json) printJson({ url })
        else await openUrl(url)
        return undefined
      }),
    )
}
