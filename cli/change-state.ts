// The actions of box suspend, wake and restart: request the state change, wait until it is complete, print the boxes.
import type { Command } from 'commander'
import type { Box } from '../shared/api/boxes.ts'
import { startBatch } from './batch.ts'
import { colorize, getStateColor } from './colors.ts'
import { boxCommand } from './command-name.ts'
import { printIfInterrupted } from './exec/request.ts'
import {
  createJsonOption,
  createNoWaitOption,
  createQuietOption,
  type JsonOption,
  type QuietOption,
  type WaitOption,
} from './options.ts'
import { printJson, printStderr } from './output.ts'
import { selectBoxes } from './select-boxes.ts'
import type { Session } from './session.ts'
import { getProgress, hasStatusLine, type Progress } from './status-line.ts'
import { waitForState } from './wait.ts'

export type ChangeOptions = JsonOption & QuietOption & WaitOption & { all?: boolean }

type Action = {
  targetState: 'suspended' | 'running'
  /** The observed state during the change. */
  transition: string
  /** The boxes of --all. */
  appliesTo(box: Box): boolean
}

const ACTIONS = {
  suspend: {
    targetState: 'suspended',
    transition: 'suspending',
    appliesTo: ({ desiredState, observedState }) =>
      desiredState === 'running' && observedState !== 'provision_failed',
  },
  wake: {
    targetState: 'running',
    transition: 'waking',
    appliesTo: ({ desiredState }) => desiredState === 'suspended',
  },
} satisfies Record<string, Action>

/** The arguments and options of suspend and wake. */
export const addChangeOptions = (command: Command, all: string): Command =>
  command
    .argument('[name...]', 'names or ids of boxes')
    .option('-a, --all', all)
    .addOption(createNoWaitOption())
    .addOption(createQuietOption())
    .addOption(createJsonOption())

/** Sends all requests before it waits, so that several boxes change concurrently. Returns the exit code. */
export async function changeStates(
  session: Session,
  names: string[],
  action: keyof typeof ACTIONS,
  options: ChangeOptions,
): Promise<number> {
  const { all, wait, json, quiet } = options
  const progress = getProgress(options)
  const { targetState, transition, appliesTo } = ACTIONS[action]
  const batch = startBatch(names)
  const boxes = await selectBoxes(session, names, all ? appliesTo : null, batch.run)
  if (boxes.length === 0 && all && progress !== 'none') printStderr(`No boxes to ${action}.`)
  const changing = await batch.run(boxes, (box) => requestChange(session, box, action))
  await batch.run(changing, async (changingBox) => {
    const box = wait ? await waitAndPrint(session, changingBox, targetState, progress) : changingBox
    if (json) printJson(box)
    else if (!wait && !quiet)
      printStderr(`${box.hostname}: ${box.observedState === targetState ? targetState : transition}`)
  })
  return batch.exitCode
}

/** Suspends boxes that are running, and wakes all of them. Returns the exit code. */
export async function restartBoxes(
  session: Session,
  names: string[],
  options: JsonOption & QuietOption,
): Promise<number> {
  const progress = getProgress(options)
  const batch = startBatch(names)
  const boxes = await selectBoxes(session, names, null, batch.run)
  const suspending = await batch.run(boxes, (box) =>
    ACTIONS.suspend.appliesTo(box) ? requestChange(session, box, 'suspend') : Promise.resolve(box),
  )
  await batch.run(suspending, (box) =>
    printIfInterrupted(
      session,
      `interrupted. ${box.hostname} may be suspended now: start it with \`${boxCommand()} wake ${box.hostname}\`.`,
      async () => {
        if (box.desiredState === 'suspended') await waitForState(session, box, 'suspended', progress)
        const waking = await requestChange(session, box, 'wake')
        const running = await waitAndPrint(session, waking, 'running', progress)
        if (options.json) printJson(running)
      },
    ),
  )
  return batch.exitCode
}

async function requestChange(session: Session, { id }: Box, action: keyof typeof ACTIONS): Promise<Box> {
  return (await session.client.request<{ box: Box }>('POST', `/boxes/${id}/${action}`)).box
}

/** The changing line disappears: prints the final state in its position. */
async function waitAndPrint(
  session: Session,
  box: Box,
  targetState: Action['targetState'],
  progress: Progress,
): Promise<Box> {
  const changed = await waitForState(session, box, targetState, progress)
  if (progress === 'lines' && hasStatusLine())
    printStderr(`${box.hostname}: ${colorize(targetState, getStateColor(targetState), process.stderr)}`)
  return changed
}
