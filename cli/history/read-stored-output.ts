// Reads the stored output of a command from the history, page by page.
import { setTimeout as sleep } from 'node:timers/promises'
import type { CommandOutput } from '../../shared/api/commands.ts'
import type { Session } from '../connection/session.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { getPath } from '../processes/read-records.ts'

/** How often new output of a running command is requested. */
const MIN_POLL_INTERVAL_MS = 200
const MAX_POLL_INTERVAL_MS = 2000
/** Tolerates a coordinator restart. */
const UNREACHABLE_GRACE_MS = 30_000

export type StoredOutput = {
  boxId: string
  id: string
  stream: 'stdout' | 'stderr'
  /** The output is read from this position on, in bytes. */
  offset: number
}

/** Continues until the command has exited and all of its output is read. Throws CliError. */
export async function* readStoredOutput(
  session: Session,
  { boxId, id, stream, offset: start }: StoredOutput,
): AsyncGenerator<CommandOutput, void, undefined> {
  const { client, signal } = session
  const path = `${getPath(boxId)}/${encodeURIComponent(id)}/output`
  for (let offset = start, interval = MIN_POLL_INTERVAL_MS; ; ) {
    const query = new URLSearchParams({ stream, encoding: 'base64', offset: String(offset) })
    const page = await retryIfUnreachable(session, () =>
      client.request<CommandOutput>('GET', `${path}?${query}`),
    )
    yield page
    if (page.done) return
    const hasNewBytes = page.nextOffset > offset
    interval = hasNewBytes ? MIN_POLL_INTERVAL_MS : Math.min(interval * 1.5, MAX_POLL_INTERVAL_MS)
    offset = page.nextOffset
    // Request the next stored page immediately.
    if (!hasNewBytes || page.nextOffset >= page.size) await sleep(interval, undefined, { signal })
  }
}

async function retryIfUnreachable<T>({ signal }: Session, request: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    try {
      return await request()
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === EXIT.unreachable
      if (!isUnreachable || performance.now() - startedAt > UNREACHABLE_GRACE_MS) throw error
      await sleep(Math.random() * MAX_POLL_INTERVAL_MS, undefined, { signal })
    }
  }
}
