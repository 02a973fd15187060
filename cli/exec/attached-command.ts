// Starts an attached command on a box and connects it to the standard streams of this process.

import type { Attachment } from '../../client/attach/attachment.ts'
import type { OutputChannel } from '../../client/attach/format.ts'
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import type { EdgeClient } from '../connection/client.ts'
import { invalidDataError } from '../connection/server-data.ts'
import { printMessage } from '../output/print.ts'
import { replaceStartErrors } from '../processes/process-messages.ts'

export type AttachedCommand = {
  processId: string
  attachment: Attachment
  /** Stops reading stdin. */
  stopForwarding(): void
  /** Rejects the result of the attachment with the reason. */
  abort(reason: unknown): void
}

export type AttachedRequest = Omit<ExecRequest, 'attached' | 'detached'> & {
  /** Forward stdin. */
  stdin: boolean
  disconnectTimeoutSeconds: number
}

export type AttachedOutput = {
  /** Default: writes to the standard streams. */
  write?: (channel: OutputChannel, bytes: Uint8Array, signal: AbortSignal) => Promise<void>
  /** The command in messages. Default: "the command". */
  subject?: string
}

/** @throws CliError when the command cannot be started */
export async function startAttached(
  edge: EdgeClient,
  request: AttachedRequest,
  { write, subject = 'the command' }: AttachedOutput = {},
): Promise<AttachedCommand> {
  // Imported here: the other commands do not need these modules. Loaded while the request is sent.
  const modules = Promise.all([
    import('../attach/attach.ts'),
    import('../attach/standard-streams.ts'),
    import('../connection/open-websocket.ts'),
  ])
  const { processId } = await replaceStartErrors(
    edge.requestJson<ExecStarted>('POST', '/exec', { ...request, attached: true }),
    edge.boxName,
    request.cwd,
  )
  if (typeof processId !== 'string') throw invalidDataError('a response without a processId')
  const [{ attach }, { forwardStdin, writeOutput }] = await modules
  const controller = new AbortController()
  const { signal } = controller
  const writeChunk = write ?? writeOutput
  const of = write === undefined ? '' : ` of ${subject}`
  const attachment = attach({
    edge,
    route: `/exec/${encodeURIComponent(processId)}/attach`,
    start: { stdout: 0, stderr: 0 },
    sink: {
      write: (channel, bytes) => writeChunk(channel, bytes, signal).catch(ignoreClosedPipe),
      reportMissing: (channel, bytes) =>
        printMessage(`${bytes} bytes of ${channel}${of} before this point are missing.`),
    },
    signal,
    onOutage: (reason) =>
      printMessage(`disconnected from ${subject}. ${reason} Reconnecting; press Ctrl-C to stop.`),
    onStdinLost: () =>
      printMessage(
        `the agent of ${edge.boxName} restarted and lost a part of stdin. The box terminates the command. Run it again.`,
      ),
    onReconnect: () => printMessage(`reconnected; the output${of} continues where it stopped.`),
  })
  return {
    processId,
    attachment,
    stopForwarding: request.stdin ? forwardStdin(attachment, process.stdin) : () => undefined,
    abort: (reason) => controller.abort(reason),
  }
}

export const terminateCommand = (edge: EdgeClient, processId: string): Promise<unknown> =>
  edge.forCleanup().requestJson('DELETE', `/exec/${encodeURIComponent(processId)}`)

/** The reader has closed the pipe: further output is discarded, so that the connection stays open until box exits. */
function ignoreClosedPipe(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error
}
