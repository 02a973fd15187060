// box upgrade: restarts the coordinator with the installed version. Boxes and commands continue.

import type { Command } from 'commander'
import type { CoordinatorRecord } from '../../shared/coordinator-process.ts'
import { VERSION } from '../../shared/version.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { sendSignal, waitUntilExited } from '../local/running-coordinator.ts'
import { findRestartCommand, readEnvironment } from '../local/running-process.ts'
import { requireLocal, selectCoordinator } from '../local/select-coordinator.ts'
import { getLogFile, startCoordinator } from '../local/start-coordinator.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printStderr } from '../output/print.ts'

/** A coordinator waits 10 seconds for requests in flight. */
const STOP_TIMEOUT_MS = 60_000

export function addUpgradeCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('upgrade')
    .summary('restart the coordinator with the installed version')
    .description(
      'Restarts only the coordinator on this machine, in the background, with the version that is installed now: at the same ' +
        'address, and with the environment variables of the running one. Boxes, their commands and terminals continue, and ' +
        'clients reconnect. It does not download a version: install it first.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box backup boxwood.tar && git pull && npm ci && box upgrade

To change a variable, use \`box down\` and \`box up\`. For a service, use \`systemctl restart\`.`,
    )
    .action((options: JsonOption) => runLocalAction((signal) => upgrade(options, signal)))
}

async function upgrade(options: JsonOption, signal: AbortSignal): Promise<undefined> {
  const { dataDir, running } = requireLocal(selectCoordinator(process.env, process.cwd()), 'restarted')
  if (running === null)
    throw new CliError(
      EXIT.failed,
      'The coordinator is not running. `box up` starts it with the installed version.',
    )
  const restartCommand = findRestartCommand(running.pid)
  if (restartCommand !== null)
    throw new CliError(
      EXIT.failed,
      `The coordinator runs as a service. Restart it with \`${restartCommand}\`: boxes and commands continue.`,
    )
  const env = { ...readEnvironment(running.pid), ...getAddress(running) }
  if (!options.json) printStderr('Restarting the coordinator. The boxes keep running.')
  sendSignal(running, 'SIGTERM')
  if (!(await waitUntilExited(running, STOP_TIMEOUT_MS, signal)))
    throw new CliError(
      EXIT.failed,
      `The coordinator (pid ${running.pid}) has not stopped after ${STOP_TIMEOUT_MS / 1000} s. The boxes keep running. The log is in ${getLogFile(dataDir)}.`,
    )
  const { url, pid } = await startCoordinator(dataDir, signal, env)
  const versions = { previousVersion: running.version, version: VERSION }
  if (options.json) printJson({ restarted: true, url, pid, ...versions, dataDirectory: dataDir })
  else print(`Boxwood runs in the background at ${url} (pid ${pid}), ${describeVersions(versions)}.`)
  return undefined
}

function describeVersions({
  previousVersion,
  version,
}: {
  previousVersion: string
  version: string
}): string {
  return previousVersion === version
    ? `version ${version}`
    : `version ${version} instead of ${previousVersion}`
}

/** Port 0 would select another port: clients would not find the coordinator again. */
function getAddress({ url, pid }: CoordinatorRecord): { BOXWOOD_LISTEN?: string } {
  return /:0$/.test(readEnvironment(pid).BOXWOOD_LISTEN ?? '') ? { BOXWOOD_LISTEN: new URL(url).host } : {}
}
