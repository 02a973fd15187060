// The actions of box suspend, stop, wake and restart: request the state change, wait until it is complete, print the boxes.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import {
  addOutputOptions,
  type JsonOption,
  type OutputOptions,
  type QuietOption,
} from '../arguments/options.ts'
import { boxCommand } from '../command-name.ts'
import type { Session } from '../connection/session.ts'
import { printIfInterrupted } from '../exec/request.ts'
import { startBatch } from '../output/batch.ts'
import { formatBoxState, isSuspended } from '../output/box-state.ts'
import { colorize, getStateColor } from '../output/colors.ts'
import { printJson, printStderr } from '../output/print.ts'
import { getProgress, hasStatusLine, type Progress } from '../output/status-line.ts'
import { waitForBox, waitForState } from '../wait/wait-for-box.ts'
import {
  addSelectionOptions,
  getSelectionOption,
  type SelectionOptions,
  selectBoxes,
} from './select-boxes.ts'

export type ChangeOptions = OutputOptions & SelectionOptions

export type RestartOptions = JsonOption & QuietOption & SelectionOptions

type Action = {
  targetState: 'suspended' | 'running'
  /** The observed state during the change. */
  transition: string
  /** The boxes of --all and --label. */
  appliesTo(box: Box): boolean
  /** The request, after the id of the box. */
  route: string
}

/** An enrolled machine cannot be suspended, so --all leaves it out. */
const isRunning = ({ kind, desiredState, observedState }: Box): boolean =>
  kind !== 'machine' && desiredState === 'running' && observedState !== 'provision_failed'
const isFrozen = ({ suspendedAs }: Box): boolean => suspendedAs === 'frozen'

const ACTIONS = {
  suspend: {
    targetState: 'suspended',
    transition: 'suspending',
    appliesTo: isRunning,
    route: 'suspend',
  },
  stop: {
    targetState: 'suspended',
    transition: 'stopping',
    appliesTo: (box) => isRunning(box) || isFrozen(box),
    route: 'suspend?stop=1',
  },
  wake: {
    targetState: 'running',
    transition: 'waking',
    appliesTo: ({ desiredState }) => desiredState === 'suspended',
    route: 'wake',
  },
} satisfies Record<string, Action>

/** The arguments and options of suspend, stop and wake. */
export const addChangeOptions = (command: Command, verb: string, all: string): Command =>
  addOutputOptions(addSelectionOptions(command.argument('[name...]', 'names or ids of boxes'), verb, all))

/** Sends all requests before it waits, so that several boxes change concurrently. Returns the exit code. */
export async function changeStates(
  session: Session,
  names: string[],
  action: ActionName,
  options: ChangeOptions,
): Promise<number> {
  const { wait, json, quiet } = options
  const progress = getProgress(options)
  const { transition, appliesTo } = ACTIONS[action]
  const batch = startBatch(names)
  const boxes = await selectBoxes(session, names, { ...options, appliesTo }, batch.run)
  printIfNone(boxes, action, options)
  const changing = await batch.run(boxes, (box) => requestChange(session, box, action))
  await batch.run(changing, async (changingBox) => {
    const box = wait ? await waitAndPrint(session, changingBox, action, progress) : changingBox
    if (json) printJson(box)
    else if (!wait && !quiet)
      printStderr(`${box.hostname}: ${isComplete(box, action) ? formatBoxState(box) : transition}`)
  })
  return batch.exitCode
}

function printIfNone(
  boxes: readonly Box[],
  verb: string,
  options: SelectionOptions & JsonOption & QuietOption,
): void {
  if (boxes.length > 0 || getSelectionOption(options) === null) return
  if (getProgress(options) !== 'none') printStderr(`No boxes to ${verb}.`)
}

/** Suspends boxes that are running, and wakes all of them. Returns the exit code. */
export async function restartBoxes(
  session: Session,
  names: string[],
  options: RestartOptions,
): Promise<number> {
  const progress = getProgress(options)
  const batch = startBatch(names)
  const boxes = await selectBoxes(session, names, { ...options, appliesTo: isRunning }, batch.run)
  printIfNone(boxes, 'restart', options)
  const suspending = await batch.run(boxes, (box) =>
    // The coordinator refuses to stop an enrolled machine.
    ACTIONS.stop.appliesTo(box) || box.kind === 'machine'
      ? requestChange(session, box, 'stop')
      : Promise.resolve(box),
  )
  await batch.run(suspending, (box) =>
    printIfInterrupted(
      session,
      `interrupted. ${box.hostname} may be suspended now: start it with \`${boxCommand()} wake ${box.hostname}\`.`,
      async () => {
        if (box.desiredState === 'suspended') await waitForAction(session, box, 'stop', progress)
        const waking = await requestChange(session, box, 'wake')
        const running = await waitAndPrint(session, waking, 'wake', progress)
        if (options.json) printJson(running)
      },
    ),
  )
  return batch.exitCode
}

type ActionName = keyof typeof ACTIONS

async function requestChange(session: Session, { id }: Box, action: ActionName): Promise<Box> {
  const path = `/boxes/${id}/${ACTIONS[action].route}`
  return (await session.client.request<{ box: Box }>('POST', path)).box
}

const isComplete = (box: Box, action: ActionName): boolean =>
  (action === 'wake' ? box.observedState === 'running' : isSuspended(box.observedState)) &&
  !(action === 'stop' && isFrozen(box))

async function waitForAction(
  session: Session,
  box: Box,
  action: ActionName,
  progress: Progress,
): Promise<Box> {
  const { targetState } = ACTIONS[action]
  const changed = await waitForState(session, box, targetState, progress)
  if (isComplete(changed, action)) return changed
  // The freeze had started before the request to stop.
  const stopping = await requestChange(session, changed, action)
  return waitForBox(session, stopping, progress, {
    subject: `The stop of ${box.hostname}`,
    isMet: (detail) => !isFrozen(detail.box),
  })
}

/** The changing line disappears: prints the final state in its position. */
async function waitAndPrint(
  session: Session,
  box: Box,
  action: ActionName,
  progress: Progress,
): Promise<Box> {
  const changed = await waitForAction(session, box, action, progress)
  if (progress === 'lines' && hasStatusLine()) {
    const state = colorize(formatBoxState(changed), getStateColor(changed.observedState), process.stderr)
    printStderr(`${box.hostname}: ${state}`)
  }
  return changed
}
