// box up: starts the coordinator in the background.
import { join } from 'node:path'
import type { Command } from 'commander'
import { type CoordinatorRecord, describeSignInLink } from '../../shared/coordinator-process.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { readRunningCoordinator } from '../connection/coordinator-record.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { readReadiness } from '../local/readiness.ts'
import { waitUntilExited } from '../local/running-coordinator.ts'
import { formatBoxCommand, requireLocal, selectCoordinator } from '../local/select-coordinator.ts'
import { getLogFile, type StartedCoordinator, startCoordinator } from '../local/start-coordinator.ts'
import { print, printJson, printMessage } from '../output/print.ts'

type Options = JsonOption & { listen?: string }

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
    .option('--listen <host:port>', 'listen at this address; later starts use it too')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box up
  box up --listen 127.0.0.1:7071

See also: box status, box down`,
    )
    .action((options: Options) => runLocalAction((signal) => up(options, signal)))
}

async function up(options: Options, signal: AbortSignal): Promise<undefined> {
  const variables = options.listen === undefined ? {} : { BOXWOOD_LISTEN: options.listen }
  const { dataDir, running } = requireLocal(selectCoordinator(process.env, process.cwd()), 'started')
  if (running !== null && !(await hasStopped(running, signal))) return printRunning(running, dataDir, options)
  let started: StartedCoordinator
  try {
    started = await startCoordinator(dataDir, signal, variables)
  } catch (error) {
    // Another `box up` or `npm start` may have started one at the same time.
    const other = readRunningCoordinator(dataDir)
    if (other === null) throw error
    return printRunning(other, dataDir, options)
  }
  const { url, pid, machines, engines, signInLink, suggestedCommand } = started
  const box = formatBoxCommand(dataDir, process.env, process.cwd())
  if (options.json) printJson({ started: true, url, pid, dataDirectory: dataDir })
  else
    print(`Boxwood runs in the background at ${url} (pid ${pid}).
${engines === '' ? machines : `${machines}\n${engines}`}${signInLink === null ? '' : `\n${describeSignInLink(signInLink)}`}
The owner's API key is in ${join(dataDir, 'owner.key')}. The log is in ${getLogFile(dataDir)}.

Next:
  ${box} ${suggestedCommand}
  ${box} down   # stops the coordinator and the boxes`)
  return undefined
}

/** Waits for a coordinator that is stopping. */
async function hasStopped(running: CoordinatorRecord, signal: AbortSignal): Promise<boolean> {
  if ((await readReadiness(running.url, signal)) !== 'stopping') return false
  return waitUntilExited(running, STOPPING_TIMEOUT_MS, signal)
}

function printRunning({ url, pid }: CoordinatorRecord, dataDir: string, options: Options): undefined {
  const setting =
    options.listen !== undefined ? '--listen' : process.env.BOXWOOD_REGIONS ? 'BOXWOOD_REGIONS' : null
  if (setting !== null)
    printMessage(
      `${setting} applies to a start. To change it, run \`box down\`, and then this command again.`,
    )
  if (options.json) printJson({ started: false, url, pid, dataDirectory: dataDir })
  else print(`The coordinator is already running at ${url} (pid ${pid}).`)
}
