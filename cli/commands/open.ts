// box open: opens the page of the coordinator in a browser.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import { findOnPath } from '../../shared/command-name.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { findCoordinator } from '../connection/find-coordinator.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { print, printJson, printMessage } from '../output/print.ts'
import { DEFAULT_DATA_PARENT } from '../project-directory.ts'

export function addOpenCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('open')
    .summary('open the page of the coordinator in a browser')
    .description(
      'Opens the page of the coordinator in a browser with xdg-open, and prints its URL. Without a display, and without ' +
        'xdg-open, only prints the URL.',
    )
    .addOption(createJsonOption('print the URL as JSON, and open nothing'))
    .addHelpText('after', '\nExamples:\n  box open\n  curl $(box open --json | jq -r .url)openapi.json')
    .action((options: JsonOption) => runLocalAction(() => open(options)))
}

async function open({ json }: JsonOption): Promise<undefined> {
  const { baseUrl } = findCoordinator(process.env, process.cwd(), DEFAULT_DATA_PARENT)
  const url = `${new URL(baseUrl).origin}/`
  if (json) printJson({ url })
  else {
    print(url)
    if (hasDisplay() && !(await openInBrowser(url)))
      printMessage('xdg-open failed. Open the URL in a browser.')
  }
}

const hasDisplay = (): boolean =>
  Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY) &&
  findOnPath('xdg-open', process.env.PATH) !== null

/** The time limit of the command. On some systems xdg-open runs until the browser exits. */
const OPEN_TIMEOUT_MS = 2_000

/** Returns false when xdg-open has failed. */
async function openInBrowser(url: string): Promise<boolean> {
  const child = spawn('xdg-open', [url], { stdio: 'ignore', detached: true })
  try {
    const [code] = await once(child, 'exit', { signal: AbortSignal.timeout(OPEN_TIMEOUT_MS) })
    return code === 0
  } catch (error) {
    child.unref()
    return error instanceof Error && error.name === 'AbortError'
  }
}
