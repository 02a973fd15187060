// Which failed connections to a stream the box command retries, and what it prints meanwhile.
import t from 'tap'
import { type FollowOptions, followStream, type Resuming } from '../../../cli/follow/follow-stream.ts'
import { CliError, EXIT } from '../../../cli/output/exit-codes.ts'
import { createError } from '../../../client/http/errors.ts'

const failure = (status: number, code: string) => createError({ status, code, message: 'No.' })
const edge = {
  openStream: () => Promise.reject(new Error('unused')),
  toCliError: (error: unknown) => new CliError(EXIT.failed, (error as Error).message),
}

/** The handlers that a stream gets. */
async function getHandlers(options: Partial<FollowOptions> = {}): Promise<Resuming> {
  const { signal } = new AbortController()
  const notices = { onOutage: () => undefined, onReconnect: () => undefined }
  let handlers: Resuming | undefined
  // biome-ignore lint/correctness/useYield: nothing arrives.
  const events = followStream('/exec', { edge, signal, ...notices, ...options }, async function* (resuming) {
    handlers = resuming
  })
  await events.next()
  return handlers as Resuming
}

t.test('retries while the coordinator or the box is busy', async (t) => {
  const { canRetry } = await getHandlers()
  for (const wasConnected of [false, true]) {
    t.ok(await canRetry?.(failure(429, 'rate_limited'), wasConnected))
    t.ok(await canRetry?.(failure(503, 'control_plane_unavailable'), wasConnected))
    t.ok(await canRetry?.(failure(0, 'no_response'), wasConnected))
    t.notOk(await canRetry?.(failure(401, 'unauthorized'), wasConnected))
    t.equal(await canRetry?.(failure(404, 'invalid_response'), wasConnected), wasConnected, 'of a proxy')
  }
})

t.test('a new stream above the limit fails; a lost one, which may still count, is retried', async (t) => {
  const { canRetry } = await getHandlers()
  const full = failure(429, 'customer_session_limit')
  t.notOk(await canRetry?.(full, false))
  t.ok(await canRetry?.(full, true))
})

t.test('a box that is not running is waited for, unless it stays stopped', async (t) => {
  const stopped = failure(409, 'box_not_running')
  const handlers = await Promise.all([
    getHandlers(),
    getHandlers({ isBoxStopped: async () => false }),
    getHandlers({ isBoxStopped: async () => true }),
  ])
  const ask = (wasConnected: boolean) =>
    Promise.all(handlers.map(({ canRetry }) => canRetry?.(stopped, wasConnected)))
  t.same(await ask(false), [false, false, false])
  t.same(await ask(true), [true, true, false])
})

t.test('a limit that delays the first event is reported once', async (t) => {
  const reasons: string[] = []
  const { canRetry, onConnection } = await getHandlers({ onWait: (reason) => reasons.push(reason) })
  for (let attempt = 0; attempt < 4; attempt += 1) {
    const error = failure(429, 'rate_limited')
    await canRetry?.(error, false)
    onConnection?.(error)
  }
  t.same(reasons, ['No.'])
})
