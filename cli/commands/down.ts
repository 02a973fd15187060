// box down: stops the coordinator and the boxes on this machine.

import type { Command } from 'commander'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { RunLocalAction } from '../connection/session.ts'
import { requireLocal, selectCoordinator } from '../local/select-coordinator.ts'
import { stopCoordinator, suspendRemainingBoxes } from '../local/stop-coordinator.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printMessage, printStderr } from '../output/print.ts'

export function addDownCommand(program: Command, runLocalAction: RunLocalAction): void {
  program
    .command('down')
    .summary('stop the coordinator and the boxes on this machine')
    .description(
      'Stops the coordinator on this machine, also one that `npm start` has started, and suspends its boxes: files are ' +
        'kept, processes are terminated. Also suspends boxes that run on this machine without a coordinator. Waits until everything has ' +
        'stopped. The next start of the coordinator wakes the boxes.',
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Example:
  box down

See also: box status, box up`,
    )
    .action((options: JsonOption) => runLocalAction((signal) => down(options, signal)))
}

async function down(options: JsonOption, signal: AbortSignal): Promise<undefined> {
  const { dataDir, running } = requireLocal(selectCoordinator(process.env, process.cwd()), 'stopped')
  if (running !== null) {
    if (!options.json) printStderr('Stopping the coordinator and its boxes.')
    await stopCoordinator(running, signal)
  }
  // The coordinator may not have stopped all boxes, and boxes may have run without it.
  const { suspended, stopped, failed, left } = await suspendRemainingBoxes(dataDir, signal)
  if (failed.length > 0)
    throw new CliError(
      EXIT.failed,
      `These boxes were not stopped: ${failed.join(', ')}. Run \`box down\` again. The next start of the coordinator wakes them.`,
    )
  if (left.length > 0)
    printMessage(
      `These boxes continue to run in their engine: ${left.join(', ')}. To stop them, start the coordinator with \`${boxCommand()} up\`, then run \`${boxCommand()} down\`.`,
    )
  const names = [...suspended, ...stopped].sort()
  if (options.json) printJson({ stopped: running !== null, boxes: names, dataDirectory: dataDir })
  else print(describeResult(running !== null, names, dataDir))
  return undefined
}

function describeResult(wasRunning: boolean, names: string[], dataDir: string): string {
  const boxes = names.length > 0 ? `Stopped boxes that ran without a coordinator: ${names.join(', ')}.` : ''
  if (wasRunning)
    return `The coordinator and its boxes are stopped. \`${boxCommand()} up\` starts them again.${boxes && `\n${boxes}`}`
  return boxes || `Nothing was running with the data directory ${dataDir}.`
}
