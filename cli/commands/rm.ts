// box rm: deletes boxes.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { addOutputOptions, type OutputOptions } from '../arguments/options.ts'
import { deleteBox, describeLoss } from '../boxes/delete-box.ts'
import {
  addSelectionOptions,
  getSelectionOption,
  type SelectionOptions,
  selectBoxes,
} from '../boxes/select-boxes.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { canAsk, confirm } from '../output/confirm.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { printJson, printMessage, printStderr } from '../output/print.ts'
import { getProgress } from '../output/status-line.ts'
import { formatDeletionStatus, waitForDeletion } from '../wait/wait-for-deletion.ts'

type Options = OutputOptions & SelectionOptions & { force?: boolean; yes?: boolean }

export function addRmCommand(program: Command, runAction: RunAction): void {
  const command = addSelectionOptions(
    program
      .command('rm')
      .aliases(['delete', 'destroy', 'remove'])
      .summary('delete boxes with their files')
      .description(
        'Deletes boxes, their files and their processes, and waits until the deletion is complete. Of an enrolled machine, only ' +
          'the agent and its commands are removed. On a terminal, box rm asks for confirmation.',
      )
      .argument('[name...]', 'names or ids of boxes'),
    'delete',
    'boxes',
  )
  addOutputOptions(
    command
      .option('-y, --yes', 'do not ask for confirmation; --all and --label need it without a terminal')
      .option('-f, --force', 'do not ask for confirmation, and ignore boxes that do not exist'),
  )
    .addHelpText(
      'after',
      `
Examples:
  box rm fig
  box rm -y fig plum
  box rm -f fig
  box rm --label stage=test

With several boxes, each one is tried; the exit code is that of the first failure.`,
    )
    .action((names: string[], options: Options) =>
      runAction((session) => deleteBoxes(session, names, options)),
    )
}

async function deleteBoxes(session: Session, names: string[], options: Options): Promise<number> {
  const { force, yes, wait, json, quiet } = options
  const selection = getSelectionOption(options)
  const batch = startBatch(names)
  const boxes = await selectBoxes(
    session,
    names,
    { ...options, appliesTo: isNotDeleted },
    async (items, find) => {
      const found = await batch.run(items, (name) =>
        find(name).catch((error) => ignoreMissing(error, options)),
      )
      return found.filter((box) => box !== null)
    },
  )
  if (boxes.length === 0) {
    if (json && force) printJson(null)
    else if (selection !== null && !quiet) printStderr('No boxes to delete.')
    return batch.exitCode
  }
  if (!yes && !force && !(await isConfirmed(session, boxes, options))) {
    printMessage('nothing was deleted.')
    return EXIT.failed
  }
  const deleting = await batch.run(boxes, async (box) => {
    const { hostname } = box
    const loss = quiet || json ? null : await describeLoss(session.client, box)
    const response = await deleteBox(session.client, box)
    if (loss !== null) printStderr(`${hostname}: ${loss}`)
    return { hostname, response }
  })
  await batch.run(deleting, async ({ hostname, response }) => {
    const operation = wait
      ? await waitForDeletion(
          session,
          { name: hostname, command: `rm ${hostname}` },
          response.operation,
          getProgress(options) === 'none' ? 'none' : 'terminal',
        )
      : response.operation
    if (json) printJson({ ...response, operation })
    else if (!quiet) printStderr(`${hostname}: ${formatDeletionStatus(operation)}`)
  })
  return batch.exitCode
}

const isNotDeleted = ({ desiredState }: Box): boolean => desiredState !== 'terminated'

function ignoreMissing(error: unknown, { force }: Options): null {
  if (force && error instanceof CliError && error.exitCode === EXIT.notFound) return null
  throw error
}

/** @throws CliError when --all or --label selects the boxes and there is no terminal for the question */
async function isConfirmed({ signal }: Session, boxes: readonly Box[], options: Options): Promise<boolean> {
  if (!canAsk(options.json ?? false)) {
    const selection = getSelectionOption(options)
    if (selection === null) return true
    const count = `${boxes.length} ${boxes.length === 1 ? 'box' : 'boxes'}`
    throw new CliError(EXIT.usage, `${selection} deletes ${count}. Add --yes to confirm.`)
  }
  const names = boxes.map(({ hostname }) => hostname).join(', ')
  const what = boxes.length === 1 ? `box ${names}` : `${boxes.length} boxes (${names})`
  const machines = boxes.filter(({ kind }) => kind === 'machine')
  if (machines.length === boxes.length)
    return confirm(`Delete ${what} and uninstall the agent? Other files of the machine stay.`, signal)
  const files = boxes.length === 1 ? 'all its files' : 'all their files'
  const kept = machines.length > 0 ? ' The files of enrolled machines stay.' : ''
  return confirm(`Delete ${what} with ${files}?${kept}`, signal)
}
