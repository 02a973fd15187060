// box logs of several boxes: the newest process of each. Each line of output starts with the box.
import pLimit from 'p-limit'
import type { Box } from '../../shared/api/boxes.ts'
import {
  findBoxes,
  getSelectionOption,
  loadSelectedBoxes,
  type SelectionOptions,
} from '../boxes/select-boxes.ts'
import type { Session } from '../connection/session.ts'
import { startBatch } from '../output/batch.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { formatPrefix } from '../output/line-prefixer.ts'
import { printMessage } from '../output/print.ts'
import { type LogsOptions, printLogs } from './print-logs.ts'

/** Returns the highest exit code. With --follow, all boxes are followed at the same time; else one follows the other. */
export async function printLogsOfBoxes(
  session: Session,
  typed: string[],
  { all, label, ...options }: LogsOptions & SelectionOptions,
): Promise<number> {
  const batch = startBatch(typed)
  const isSelected = getSelectionOption({ ...(all && { all }), ...(label && { label }) }) !== null
  const boxes = isSelected
    ? await loadSelectedBoxes(session.client, label ? { label } : {})
    : await findBoxes(session.client, typed, batch.run)
  if (boxes.length === 0 && isSelected) throw new CliError(EXIT.notFound, 'No box matches.')
  const names = boxes.map(({ hostname }) => hostname)
  const serial = pLimit(1)
  const printBox = async ({ hostname }: Box): Promise<number> => {
    const lines = { boxName: hostname, prefix: formatPrefix(hostname, names), serial }
    try {
      return await printLogs(session, hostname, undefined, { ...options, lines })
    } catch (error) {
      if (!(error instanceof CliError) || session.signal.aborted) throw error
      printMessage(error.message.includes(hostname) ? error.message : `${hostname}: ${error.message}`)
      // Boxes without a process are no failure when they were not named.
      if (isSelected && error.exitCode === EXIT.notFound) return EXIT.ok
      return options.follow ? EXIT.lost : error.exitCode
    }
  }
  const atOnce = pLimit(options.follow ? Number.POSITIVE_INFINITY : 1)
  const exitCodes = await Promise.all(boxes.map((box) => atOnce(() => printBox(box))))
  return Math.max(batch.exitCode, ...exitCodes)
}
