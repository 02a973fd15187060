// Prints the output of a detached process; of a box that is not running, the stored output.
import type { Offsets } from '../../shared/api/processes.ts'
import { boxCommand } from '../command-name.ts'
import type { EdgeClient } from '../connection/client.ts'
import type { Session } from '../connection/session.ts'
import { isBoxStopped } from '../follow/is-box-stopped.ts'
import { createMissingOutputReporter } from '../follow/missing-output.ts'
import { getOutputSize, readOutput } from '../follow/read-output.ts'
import { EXIT } from '../output/exit-codes.ts'
import { printMessage } from '../output/print.ts'
import { findProcess, getNewestProcess, isWholeId, printNewest } from '../processes/find-process.ts'
import { isNotRunning, listProcesses } from '../processes/list-processes.ts'
import { noSuchProcessMessage, replaceNotFoundMessage, toExitCode } from '../processes/process-messages.ts'
import { printBoxStop } from './box-stop.ts'
import { type BoxLines, createOutputPrinter, type OutputPrinter } from './output-printer.ts'
import { getStartOffsets, type Selection } from './start-offsets.ts'
import { printStoredLogs } from './stored-logs.ts'
import { createTimesNote } from './times-note.ts'

export type LogsOptions = Selection & {
  follow?: boolean
  json?: boolean
  timestamps?: boolean
  /** Of one of several boxes. */
  lines?: BoxLines
}

/** @param typed the id or a prefix of it; undefined: the newest process */
export async function printLogs(
  session: Session,
  name: string,
  typed: string | undefined,
  options: LogsOptions,
): Promise<number> {
  const edge = await session.client.createEdgeClient(name)
  const { processId, isStored } = await selectProcess(session, edge, typed, options)
  const printer = createOutputPrinter(options, session.signal)
  try {
    return await printProcess(session, edge, { processId, isStored, printer, options })
  } finally {
    await printer.end()
  }
}

type PrintedProcess = {
  processId: string
  isStored: boolean
  printer: OutputPrinter
  options: LogsOptions
}

async function printProcess(
  session: Session,
  edge: EdgeClient,
  { processId, isStored, printer, options }: PrintedProcess,
): Promise<number> {
  const printed: { offsets: Offsets | null } = { offsets: null }
  const printStored = (boxId: string) =>
    printStoredLogs(session, {
      boxName: edge.boxName,
      boxId,
      processId,
      selection: options,
      follow: options.follow ?? false,
      timestamps: options.timestamps ?? false,
      printer,
      printed: printed.offsets,
    })
  if (isStored && edge.boxId !== null) return printStored(edge.boxId)
  try {
    return await replaceNotFoundMessage(
      printLiveLogs(session, edge, processId, { ...options, printer, printed }),
      noSuchProcessMessage(edge.boxName, processId),
    )
  } catch (error) {
    if (edge.boxId === null || !isNotRunning(error)) throw error
    return printStored(edge.boxId)
  }
}

async function selectProcess(
  { client }: Session,
  edge: EdgeClient,
  typed: string | undefined,
  { lines }: LogsOptions,
): Promise<{ processId: string; isStored: boolean }> {
  if (typed !== undefined && isWholeId(typed)) return { processId: typed, isStored: false }
  const { processes, isStored } = await listProcesses(client, edge)
  if (typed !== undefined)
    return { processId: findProcess(processes, edge.boxName, typed).processId, isStored }
  const { processId, command } = getNewestProcess(processes, edge.boxName)
  if (lines === undefined) printNewest('process', processId, command)
  return { processId, isStored }
}

type LiveLogs = LogsOptions & {
  printer: OutputPrinter
  /** Updated with each chunk. */
  printed: { offsets: Offsets | null }
}

async function printLiveLogs(
  session: Session,
  edge: EdgeClient,
  processId: string,
  { follow = false, timestamps = false, lines, printer, printed, ...selection }: LiveLogs,
): Promise<number> {
  const { signal } = session
  const { boxName } = edge
  const of = lines === undefined ? '' : ` on ${boxName}`
  /** Then the state of the process is unknown. */
  let isDisconnected = false
  const connection = {
    edge,
    processId,
    signal,
    onOutage(reason: string) {
      isDisconnected = true
      printMessage(`disconnected from the process${of}. ${reason} Reconnecting; press Ctrl-C to stop.`)
    },
    onWait: (reason: string) =>
      printMessage(
        `waiting${lines === undefined ? '' : ` for the output of ${boxName}`}. ${reason} Retrying; press Ctrl-C to stop.`,
      ),
    onReconnect() {
      isDisconnected = false
      printMessage(`reconnected; the output${of} continues where it stopped.`)
    },
    isBoxStopped: () => isBoxStopped(session, edge),
  }
  const { tail, bytes, since } = selection
  const isWhole = [tail, bytes, since].every((value) => value === undefined)
  const timesNote = createTimesNote()
  const size = !follow || !isWhole ? await getOutputSize(connection) : null
  const from =
    size === null
      ? { stdout: 0, stderr: 0 }
      : await getStartOffsets(connection, size, selection, timesNote.printNoSince)
  const missingOutputReporter = createMissingOutputReporter(boxName, printMessage)
  const onAbort = () =>
    printMessage(
      `${isDisconnected ? 'stopped' : 'detached; the process is still running'}. Reattach with: ${boxCommand()} logs -f ${boxName} ${processId}`,
    )
  try {
    const exit = await readOutput({
      ...connection,
      ...(timestamps && { query: { timestamps: 'true' } }),
      from,
      ...(!follow && size !== null && { until: size }),
      onAttached(hasTimes) {
        signal.addEventListener('abort', onAbort)
        if (timestamps && !hasTimes) timesNote.printNoTimes()
      },
      async onChunk(chunk) {
        await printer.print(chunk)
        printed.offsets = { ...(printed.offsets ?? from), [chunk.stream]: chunk.offset + chunk.bytes.length }
      },
      onMissing: missingOutputReporter.report,
    })
    if (exit === null) return EXIT.ok
    await printer.printExit(exit)
    if (!follow) return EXIT.ok
    if (edge.boxId !== null)
      await printBoxStop(session.client, { boxName, boxId: edge.boxId, processId, exit })
    return toExitCode(exit)
  } finally {
    missingOutputReporter.flush()
    signal.removeEventListener('abort', onAbort)
  }
}
