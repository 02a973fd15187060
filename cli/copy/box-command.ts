// Runs a command on a box as part of a copy: attached, so that its stdin or stdout has any length and survives disconnects.
import { PassThrough, type Readable } from 'node:stream'
import type { Attachment } from '../../client/attach/attachment.ts'
import type { ExitMessage } from '../../client/attach/messages.ts'
import type { ExecResult } from '../../shared/api/exec.ts'
import type { ExecKilled } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { EdgeClient } from '../connection/client.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { hideTempName } from './local-files.ts'
import { decodePath } from './path-bytes.ts'
import type { Progress } from './progress.ts'
import { startOnce } from './start-once.ts'

export type CommandContext = { edge: EdgeClient; signal: AbortSignal; progress: Progress }

/** The exit code of the scripts in box-scripts.ts when the destination is not a directory. */
export const NOT_A_DIRECTORY_EXIT_CODE = 3
/** The code of the CliError for a destination that is not a directory. */
export const NOT_A_DIRECTORY = 'not_a_directory'

const MAX_STDERR_BYTES = 4096

/** Runs a short command, and returns its stdout. @throws CliError when it fails */
export async function runOnBox(edge: EdgeClient, command: string): Promise<string> {
  const result = await edge.requestJson<ExecResult>('POST', '/exec', { command })
  if (result.exitCode !== 0) throw createFailure(edge, { ...result, status: 'exited' }, result.stderr)
  return result.stdout
}

/** Sends `input` to the command's stdin, and returns its stdout, a path. The command gets the end of stdin only after all of it. */
export async function runWithInput(
  context: CommandContext,
  command: string,
  input: AsyncIterable<Uint8Array>,
): Promise<string> {
  const stdout: Uint8Array[] = []
  const { attachment, waitForSuccess, terminate } = await startCommand(
    context,
    command,
    true,
    async (bytes) => {
      stdout.push(bytes)
    },
  )
  const send = async () => {
    for await (const { buffer, byteOffset, length } of input)
      if (!(await attachment.writeStdin(Buffer.from(buffer, byteOffset, length)))) return
    attachment.endStdin()
  }
  try {
    await Promise.race([waitForSuccess, send().then(() => waitForSuccess)])
    return decodePath(Buffer.concat(stdout))
  } catch (error) {
    await terminate()
    throw error
  }
}

/** The command's stdout. A command that fails destroys the stream with a CliError. */
export async function openOutput(context: CommandContext, command: string): Promise<Readable> {
  const output = new PassThrough()
  const { waitForSuccess, terminate } = await startCommand(context, command, false, (bytes) =>
    writeWithBackpressure(output, bytes, context.signal),
  )
  waitForSuccess.then(
    () => output.end(),
    (error) => output.destroy(error),
  )
  output.once('close', () => {
    if (!output.readableEnded) void terminate()
  })
  return output
}

type RunningCommand = {
  attachment: Attachment
  /** Rejects with a CliError when the command fails. */
  waitForSuccess: Promise<void>
  /** Terminates a command that has not exited. Never rejects. */
  terminate(): Promise<void>
}

async function startCommand(
  { edge, signal, progress }: CommandContext,
  command: string,
  hasStdin: boolean,
  onStdout: (bytes: Uint8Array) => Promise<void>,
): Promise<RunningCommand> {
  const request = {
    command,
    attached: true,
    stdin: hasStdin,
    disconnectTimeoutSeconds: LIMITS.disconnectTimeoutSeconds.default,
  }
  const [{ attach }, processId] = await Promise.all([
    import('../attach/attach.ts'),
    startOnce(edge, request, signal),
  ])
  const path = `/exec/${encodeURIComponent(processId)}`
  let stderr = Buffer.alloc(0)
  let hasExited = false
  const controller = new AbortController()
  const attachment = attach({
    edge,
    route: `${path}/attach`,
    start: { stdout: 0, stderr: 0 },
    sink: {
      async write(channel, bytes) {
        if (channel === 'stdout') return onStdout(bytes)
        stderr = Buffer.concat([stderr, bytes]).subarray(-MAX_STDERR_BYTES)
      },
      reportMissing: () => {
        throw new CliError(
          EXIT.failed,
          `${edge.boxName} has discarded a part of the data. Run the command again.`,
        )
      },
    },
    signal: AbortSignal.any([signal, controller.signal]),
    onOutage: (reason) => progress.print(`disconnected. ${reason} Reconnecting; press Ctrl-C to stop.`),
    onReconnect: () => progress.print('reconnected; the copy continues.'),
  })
  const waitForSuccess = attachment.result.then((exit) => {
    hasExited = true
    // null: detached, which this client never requests.
    if (exit === null || exit.exitCode !== 0) throw createFailure(edge, exit, stderr.toString())
  })
  waitForSuccess.catch(() => undefined)
  return {
    attachment,
    waitForSuccess,
    async terminate() {
      if (hasExited) return
      // If the request fails, the box terminates the command after the disconnect timeout.
      const killed = await edge
        .forCleanup()
        .requestJson<ExecKilled>('DELETE', path)
        .catch(() => null)
      // An open connection would keep this process alive.
      controller.abort()
      if (killed?.signal === 'KILL' && hasStdin)
        progress.print(
          `${edge.boxName}: a partial copy may remain. Remove .box-cp-* in the destination directory.`,
        )
    },
  }
}

type Exit = Pick<ExitMessage, 'status' | 'exitCode' | 'signal' | 'timedOut'>

/** Text of the box: the last lines of stderr, or the exit status of the command. */
function createFailure(edge: EdgeClient, exit: Exit | null, stderr: string): CliError {
  const lastLines = stderr.trim().split('\n').slice(-3).join('; ')
  const exitStatus =
    exit?.status === 'exited'
      ? `the copy failed with exit code ${exit.exitCode}`
      : 'the copy was terminated: the box or its agent stopped'
  const reason = sanitize(hideTempNames(lastLines) || exitStatus).replace(/\.$/, '')
  const isNotADirectory = exit?.exitCode === NOT_A_DIRECTORY_EXIT_CODE
  const options = isNotADirectory ? { code: NOT_A_DIRECTORY } : {}
  return new CliError(
    isNotADirectory ? EXIT.notFound : EXIT.failed,
    `${sanitize(edge.boxName)}: ${reason}.`,
    options,
  )
}

/** Removes the paths of temporary files, which the user did not choose. */
const hideTempNames = (text: string): string =>
  text
    .replace(/ (to|from|with directory) ['‘][^'’]*\.box-cp-[^'’]*['’]/g, '')
    .replace(/[^\s'"‘’:]*\.box-cp-[^\s'"‘’:]*/g, hideTempName)
