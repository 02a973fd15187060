// Finds out whether a process was terminated because its box was stopped.
import type { BoxDetail, BoxEvent } from '../../shared/api/boxes.ts'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import type { Client } from '../connection/client.ts'
import { CliError } from '../output/exit-codes.ts'
import { printMessage, sanitize } from '../output/print.ts'
import { getPath } from '../processes/read-records.ts'

const STOP_STATES: readonly BoxEvent['toState'][] = ['suspending', 'suspended', 'terminating', 'terminated']
/** The clocks of the box and of the coordinator may differ. */
const CLOCK_TOLERANCE_MS = 1000

export type ProcessTimes = Pick<CommandRecord, 'startedAt' | 'finishedAt'>

export type StoppedProcess = {
  boxName: string
  boxId: string
  processId: string
  exit: { status: string; signal: string | null }
}

/** Prints why the process was terminated, if its box was stopped. */
export async function printBoxStop(
  client: Client,
  { boxName, boxId, processId, exit }: StoppedProcess,
): Promise<void> {
  const isTermination = exit.status === 'lost' || exit.signal === 'TERM' || exit.signal === 'KILL'
  const stop = isTermination ? await findBoxStop(client, boxId, processId) : null
  if (stop === null) return
  const reason = `${sanitize(stop.at)} (${sanitize(stop.reason)})`
  printMessage(`${boxName} was stopped at ${reason}, which terminated the process.`)
}

/** The state event of the stop that terminated the process; null if another event terminated the process, or if the reason is unknown. */
async function findBoxStop(client: Client, boxId: string, processId: string): Promise<BoxEvent | null> {
  try {
    const { events } = await client.getBoxDetail(boxId)
    const path = `${getPath(boxId)}/${encodeURIComponent(processId)}`
    const { command } = await client.request<{ command: CommandRecord }>('GET', path)
    return findStopEvent(events, command)
  } catch (error) {
    // Additional information only: the exit code is known.
    if (error instanceof CliError) return null
    throw error
  }
}

/** A process does not survive a stop of its box, so the first stop after its start decides. @param events newest first */
export function findStopEvent(
  events: BoxDetail['events'],
  { startedAt, finishedAt }: ProcessTimes,
): BoxEvent | null {
  const first = events.findLast(
    ({ toState, at }) => STOP_STATES.includes(toState) && Date.parse(at) >= Date.parse(startedAt),
  )
  if (first === undefined) return null
  const isBefore = finishedAt !== null && Date.parse(finishedAt) < Date.parse(first.at) - CLOCK_TOLERANCE_MS
  return isBefore ? null : first
}
