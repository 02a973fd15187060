// The attached commands of a box. Terminates commands whose client does not return, and deletes the output of exited ones.
import type { Logger } from 'pino'
import { ApiError } from '../../../shared/errors.ts'
import type { StartTimer } from '../../running-clock.ts'
import { hasDetachedMarker } from '../detached/record.ts'
import { findProcess } from '../detached/routes.ts'
import type { DetachedProcess, DetachedProcesses } from '../detached/types.ts'
import { type Attachment, createAttachment } from './attachment.ts'

export type Attachments = {
  /** @throws ApiError not_found; invalid_request for a command without a client */
  get(processId: string): Attachment
  /** Whether a command receives stdin: the stdin is lost when the agent stops. */
  hasOpenStdin(): boolean
  /** The commands keep running. */
  close(): void
}

export type AttachmentsOptions = {
  processes: DetachedProcesses
  log: Logger
  /** Starts the timer of the time limit without a client. */
  startTimer?: StartTimer
  /** Resolves when the reports of an exited process are in the spool. */
  waitUntilRecorded(processId: string): Promise<void>
}

export function createAttachments(options: AttachmentsOptions): Attachments {
  const { processes, log, startTimer, waitUntilRecorded } = options
  const attachments = new Map<string, Attachment>()
  let isRestoring = true

  const terminate = (processId: string) =>
    processes
      .kill(processId)
      .catch((err: unknown) => log.error({ err, processId }, 'failed to terminate an attached command'))

  const remove = async (processId: string) => {
    attachments.get(processId)?.close()
    attachments.delete(processId)
    await waitUntilRecorded(processId)
    await processes.remove(processId)
  }

  function add(detachedProcess: DetachedProcess): void {
    const { processId, attached, dir } = detachedProcess
    if (attached === null || hasDetachedMarker(dir)) return
    const attachment = createAttachment({
      process: detachedProcess,
      disconnectTimeoutMs: attached.disconnectTimeoutMs,
      startTimer,
      stdin: attached.stdin ? (isRestoring ? 'restored' : 'open') : 'none',
      onTimeout() {
        if (detachedProcess.exit !== null) return void remove(processId)
        log.info({ processId }, 'terminating an attached command: no client is connected')
        void terminate(processId)
      },
      onDetached: () => attachments.delete(processId),
      onFinished: () => void remove(processId),
    })
    attachments.set(processId, attachment)
    // The previous agent did not record how many bytes of stdin it had written.
    if (isRestoring && attachment.stdin?.isEnded === false && detachedProcess.exit === null) {
      log.warn({ processId }, 'terminating an attached command: the agent restarted while it received stdin')
      void terminate(processId)
    }
  }

  const unsubscribe = processes.subscribe(add)
  isRestoring = false

  return {
    get(processId) {
      findProcess(processes, processId)
      const attachment = attachments.get(processId)
      if (attachment === undefined)
        throw new ApiError(
          'invalid_request',
          'This command has no attached client. Read its output with GET /exec/{processId}/stream.',
        )
      return attachment
    },
    hasOpenStdin: () =>
      [...attachments.values()].some(({ stdin }) => stdin !== null && !stdin.isClosed && !stdin.isEnded),
    close() {
      unsubscribe()
      for (const attachment of attachments.values()) attachment.close()
    },
  }
}
