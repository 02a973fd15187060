// Prints the output that the command history has of a process whose box is not running.
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import type { Offsets } from '../../shared/api/processes.ts'
import type { Session } from '../connection/session.ts'
import { createMissingOutputReporter } from '../follow/missing-output.ts'
import type { StreamName } from '../follow/read-output.ts'
import { readStoredOutput } from '../history/read-stored-output.ts'
import { EXIT } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'
import {
  formatExit,
  noSuchProcessMessage,
  replaceNotFoundMessage,
  toExitCode,
} from '../processes/process-messages.ts'
import { getPath } from '../processes/read-records.ts'
import { printBoxStop } from './box-stop.ts'
import { findLastLines } from './last-lines.ts'
import type { OutputPrinter } from './output-printer.ts'
import type { Selection } from './start-offsets.ts'
import { createTimesNote } from './times-note.ts'

export type StoredLogs = {
  boxName: string
  boxId: string
  processId: string
  selection: Selection
  follow: boolean
  timestamps: boolean
  printer: OutputPrinter
  /** The offsets after the bytes that were printed while the box was running; null if there were none. */
  printed: Offsets | null
}

/** Returns the exit code: with `follow` that of the process. */
export async function printStoredLogs(session: Session, logs: StoredLogs): Promise<number> {
  const { boxName, boxId, processId, selection, follow, timestamps, printer } = logs
  const getRecord = () =>
    session.client.request<{ command: CommandRecord }>(
      'GET',
      `${getPath(boxId)}/${encodeURIComponent(processId)}`,
    )
  const { command } = await replaceNotFoundMessage(getRecord(), noSuchProcessMessage(boxName, processId))
  printMessage(
    command.outputKept
      ? `${boxName} is not running. This is the stored output: the last 1 MiB of each stream.`
      : `${boxName} is not running, and the output was not stored: zero data retention was on.`,
  )
  const timesNote = createTimesNote()
  if (selection.since !== undefined) timesNote.printNoSince()
  if (timestamps) timesNote.printNoTimes()
  for (const stream of ['stdout', 'stderr'] as const) await printStream(session, logs, stream)
  if (!follow) return EXIT.ok
  // Read again: the exit may have been recorded while the output was read.
  const { status, exitCode, signal } = (await getRecord()).command
  await printer.printExit({ status, exitCode, signal })
  printMessage(`the process is not running: ${formatExit(status, { exitCode, signal })}.`)
  await printBoxStop(session.client, { boxName, boxId, processId, exit: { status, signal } })
  return toExitCode({ status, exitCode, signal })
}

/** Holds the stored output in memory: at most 1 MiB. */
async function printStream(session: Session, logs: StoredLogs, stream: StreamName): Promise<void> {
  const { boxName, boxId, processId: id, selection, printed, printer } = logs
  const requested = printed?.[stream] ?? 0
  const pages: Buffer[] = []
  let offset: number | undefined
  for await (const page of readStoredOutput(session, { boxId, id, stream, offset: requested })) {
    offset ??= page.offset
    pages.push(Buffer.from(page.data, 'base64'))
  }
  const bytes = Buffer.concat(pages)
  const first = offset ?? requested
  const start = printed === null ? await getStart(bytes, first, selection) : first
  if (start === first && first > requested) {
    const reporter = createMissingOutputReporter(boxName, printMessage)
    reporter.report(stream, first - requested)
  }
  if (first + bytes.length > start)
    await printer.print({ stream, bytes: bytes.subarray(start - first), offset: start, at: null })
}

/** @param first the offset of the first byte of `bytes` */
async function getStart(bytes: Buffer, first: number, { tail, bytes: count }: Selection): Promise<number> {
  if (tail !== undefined)
    return (
      first +
      (await findLastLines(tail, bytes.length, async (from, to) => ({
        offset: from,
        bytes: bytes.subarray(from, to),
      })))
    )
  return first + Math.max(0, bytes.length - (count ?? bytes.length))
}
