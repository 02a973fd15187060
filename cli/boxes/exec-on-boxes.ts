// box exec --all and --label: runs a command on several boxes at the same time. Each line of output starts with the box.
import pLimit, { type LimitFunction } from 'p-limit'
import type { Box } from '../../shared/api/boxes.ts'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import type { OutputChannel } from '../../shared/attach-format.ts'
import { LIMITS } from '../../shared/limits.ts'
import { writeOutput } from '../attach/standard-streams.ts'
import type { Session } from '../connection/session.ts'
import { startAttached, terminateCommand } from '../exec/attached-command.ts'
import { type ExecOptions, toExecRequest } from '../exec/request.ts'
import { CliError, commandExitCode, EXIT } from '../output/exit-codes.ts'
import { createLinePrefixer, formatPrefix } from '../output/line-prefixer.ts'
import { formatJson, print, printMessage } from '../output/print.ts'
import { formatTimedOut, replaceStartErrors, toExitCode } from '../processes/process-messages.ts'
import { loadSelectedBoxes, type SelectionOptions } from './select-boxes.ts'

/** The requests of a key that the coordinator serves at the same time. */
const CONCURRENCY = LIMITS.edgeConcurrency
/** Time for the output that remains when interrupted commands have exited. */
const OUTPUT_GRACE_MS = 5000

/** `problem` null: the exit code is that of the command. */
type Outcome = { exitCode: number; problem: string | null }
type Run = (box: Box) => Promise<Outcome>

/** Of a box whose turn had not come at Ctrl-C. */
const NOT_RUN: Outcome = { exitCode: EXIT.execFailed, problem: null }

/** Returns the highest exit code of the commands; 125 where box itself failed. */
export async function execOnBoxes(
  session: Session,
  args: string[],
  options: ExecOptions & SelectionOptions,
): Promise<number> {
  const boxes = await selectRunning(session, options)
  const request = toExecRequest(args, options)
  const run = options.json
    ? createJsonRun(session, request)
    : createAttachedRun(session, request, options, boxes)
  const limit = pLimit(CONCURRENCY)
  const outcomes = await Promise.all(
    boxes.map((box) =>
      limit(async () => ({ box, outcome: session.signal.aborted ? NOT_RUN : await run(box) })),
    ),
  )
  session.signal.throwIfAborted()
  if (!options.json)
    for (const { box, outcome } of outcomes)
      if (outcome.exitCode !== 0)
        printMessage(`${box.hostname}: ${outcome.problem ?? `exit code ${outcome.exitCode}`}`)
  return Math.max(...outcomes.map(({ outcome }) => outcome.exitCode))
}

const byName = (a: Box, b: Box): number => (a.hostname < b.hostname ? -1 : 1)

/** By name. @throws CliError when no selected box is running */
async function selectRunning({ client }: Session, options: SelectionOptions): Promise<Box[]> {
  const selected = (await loadSelectedBoxes(client, options)).sort(byName)
  const running = selected.filter(({ observedState }) => observedState === 'running')
  const others = selected.filter(({ observedState }) => observedState !== 'running')
  const names = others.map(({ hostname }) => hostname).join(', ')
  if (running.length === 0)
    throw new CliError(
      EXIT.failed,
      names === ''
        ? 'No box matches. `box ls` lists the boxes, and `box ls -o wide` their labels.'
        : `None of the boxes is running. Start them with \`box start\`: ${names}.`,
    )
  if (others.length > 0) printMessage(`not running, and left out: ${names}.`)
  return running
}

async function toOutcome(action: () => Promise<number>): Promise<Outcome> {
  try {
    return { exitCode: await action(), problem: null }
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    const exitCode = error.exitCode === EXIT.timedOut ? EXIT.timedOut : EXIT.execFailed
    return { exitCode, problem: error.message }
  }
}

/** Prints one object for each box. */
const createJsonRun =
  ({ client }: Session, request: ExecRequest): Run =>
  ({ hostname }) =>
    toOutcome(async () => {
      try {
        const edge = await client.createEdgeClient(hostname)
        const response = edge.requestJson<ExecResult>('POST', '/exec', request)
        const result = await replaceStartErrors(response, hostname, request.cwd)
        print(formatJson({ box: hostname, ...result }))
        return result.timedOut ? EXIT.timedOut : commandExitCode(result.exitCode, result.signal)
      } catch (error) {
        if (error instanceof CliError && error.message !== '')
          print(
            formatJson({ box: hostname, error: { code: error.code ?? 'failed', message: error.message } }),
          )
        throw error
      }
    })

function createAttachedRun(
  session: Session,
  request: ExecRequest,
  { disconnectTimeout = LIMITS.disconnectTimeoutSeconds.default }: ExecOptions,
  boxes: readonly Box[],
): Run {
  const names = boxes.map(({ hostname }) => hostname)
  const serial = pLimit(1)
  session.signal.addEventListener('abort', () =>
    printMessage('interrupted; terminating the commands. Ctrl-C again to exit immediately.'),
  )
  return ({ hostname }) =>
    toOutcome(async () => {
      const output = createPrefixedOutput(formatPrefix(hostname, names), serial)
      const edge = await session.client.createEdgeClient(hostname)
      const command = await startAttached(
        edge,
        { ...request, stdin: false, disconnectTimeoutSeconds: disconnectTimeout },
        { write: output.write, subject: `the command on ${hostname}` },
      )
      const terminate = () => terminateCommand(edge, command.processId).catch(() => undefined)
      const onAbort = () => {
        void terminate()
        setTimeout(() => command.abort(session.signal.reason), OUTPUT_GRACE_MS).unref()
      }
      session.signal.addEventListener('abort', onAbort)
      if (session.signal.aborted) onAbort()
      const removeClosedPipeHandler = session.onClosedPipe(async () => void (await terminate()))
      try {
        const exit = await command.attachment.result
        if (exit === null) throw new CliError(EXIT.execFailed, 'The command was detached.')
        if (!exit.timedOut) return toExitCode(exit)
        throw new CliError(EXIT.timedOut, formatTimedOut(request.timeoutSeconds, 'Use a longer --timeout.'))
      } finally {
        session.signal.removeEventListener('abort', onAbort)
        removeClosedPipeHandler()
        await output.end(session.signal)
      }
    })
}

/**
 * Writes whole lines: lines of several boxes are never mixed.
 * @param serial runs one write at a time: a terminal accepts a part of the bytes of a write
 */
function createPrefixedOutput(prefix: string, serial: LimitFunction) {
  const prefixers = { stdout: createLinePrefixer(prefix), stderr: createLinePrefixer(prefix) }
  const writeLines = async (channel: OutputChannel, lines: Buffer, signal: AbortSignal) => {
    if (lines.length > 0) await serial(() => writeOutput(channel, lines, signal))
  }
  return {
    write: (channel: OutputChannel, bytes: Uint8Array, signal: AbortSignal) =>
      writeLines(channel, prefixers[channel].add(bytes), signal),
    async end(signal: AbortSignal) {
      for (const channel of ['stdout', 'stderr'] as const)
        await writeLines(channel, prefixers[channel].end(), signal)
    },
  }
}
