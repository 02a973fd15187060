// box up: starts the coordinator in the background.
import { join } from 'node:path'
import type { Command } from 'commander'
import { readReadiness } from '../local/readiness.ts'
import { waitUntilExited } from '../local/running-coordinator.ts'
import { formatBoxCommand, requireLocal, selectCoordinator } from '../local/select-coordinator.ts'
import { getLogFile, startCoordinator } from '../local/start-coordinator.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { print, printJson } from '../output.ts'
import type { RunLocalAction } from '../session.ts'

const STOPPING_TIMEOUT_MS = 60_000

export function addUpCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('up')
    .summary('start the coordinator in the background')
    .description(
      'Starts the coordinator on this machine in the background, and waits until it accepts requests. Wakes the boxes ' +
        'that `box down` has suspended. Does nothing when the coordinator runs already. The coordinator appends its log ' +
        'to coordinator.log in the data directory, and reads its configuration from environment variables.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box up
  BOXWOOD_LISTEN=127.0.0.1:7071 box up

See also: box status, box down`,
    )
    .action((options: JsonOption) => runLocalAction((signal) => up(options, signal)))
}

async function up(options: JsonOption, signal: AbortSignal): Promise<undefined> {
  const { dataDir, running } = requireLocal(selectCoordinator(process.env, process.cwd()), 'started')
  if (running !== null && !(await hasStopped())) {
    const { url, pid } = running
    if (options.json) printJson({ started: false, url, pid, dataDirectory: dataDir })
    else print(`The coordinator is already running at ${url} (pid ${pid}).`)
    return
  }
  const { url, pid, isolation, suggestedCommand } = await startCoordinator(dataDir, signal)
  if (options.json) {
    printJson({ started: true, url, pid, dataDirectory: dataDir })
    return
  }
  const box = formatBoxCommand(dataDir, process.env, process.cwd())
  print(`Boxwood runs in the background at ${url} (pid ${pid}).
${isolation}
The owner's API key is in ${join(dataDir, 'owner.key')}. The log is in ${getLogFile(dataDir)}.

Next:
  ${box} ${suggestedCommand}
  ${box} down   # stops the coordinator and the boxes`)

  /** Waits for a coordinator that is stopping. */
  async function hasStopped(): Promise<boolean> {
    if (running === null || (await readReadiness(running.url, signal)) !== 'stopping') return false
    return waitUntilExited(running, STOPPING_TIMEOUT_MS, signal)
  }
}
