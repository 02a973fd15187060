// Which failed connections of an attachment are followed by another one.
import { mock } from 'node:test'
import t from 'tap'
import { attach } from '../../../client/attach/attachment.ts'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import type { SocketHandlers } from '../../../client/http/socket.ts'

mock.timers.enable({ apis: ['setTimeout'] })
t.after(() => mock.timers.reset())

const createRefusal = (code: string, status: number) => createError({ code, status, message: 'No.' })
const HIDDEN = createRefusal('no_response', 0)
const ATTACHED = { type: 'attached', stdinOffset: 0, stdoutOffset: 0, stderrOffset: 0 }
const EXIT = {
  ...{ type: 'exit', status: 'exited', exitCode: 0, signal: null, timedOut: false },
  ...{ stdoutOffset: 0, stderrOffset: 0 },
}

/** How a connection ends: refused, by a message, or lost. */
type End = BoxwoodError | { code: string } | 'lost' | 'silent'
type Options = { check?: () => Promise<unknown>; reportsPings?: boolean }

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

/** Runs the connections one after another; the one after them is attached until the exit. Returns how many there were, and the error. */
async function run(ends: End[], { check, reportsPings = true }: Options = {}) {
  let connections = 0
  const connect = async (handlers: SocketHandlers, signal: AbortSignal) => {
    const end = ends[connections]
    connections += 1
    await Promise.resolve()
    if (end instanceof Error) throw end
    const close = () => handlers.onClose(1006)
    signal.addEventListener('abort', close)
    const socket = { send: () => undefined, close, reportsPings }
    handlers.onOpen?.(socket)
    handlers.onMessage(JSON.stringify(ATTACHED))
    if (end === 'lost') close()
    else if (end === undefined) handlers.onMessage(JSON.stringify(EXIT))
    else if (end !== 'silent')
      handlers.onMessage(JSON.stringify({ type: 'error', code: end.code, message: 'No.' }))
    return socket
  }
  const { result } = attach({
    connect: (_position, handlers, signal) => connect(handlers, signal),
    ...(check !== undefined && { check }),
    start: { stdout: 0, stderr: 0 },
    sink: { write: () => undefined },
  })
  let isOver = false
  let code: string | null = null
  result.then(
    () => {
      isOver = true
    },
    (error: BoxwoodError) => {
      isOver = true
      code = error.code
    },
  )
  for (let step = 0; step < 5 && !isOver; step += 1) {
    await settle()
    mock.timers.tick(60_000)
  }
  await settle()
  return { connections, code, isOver }
}

t.test('refusals, of the first connection and of a later one', async (t) => {
  const cases: [BoxwoodError, isRetriedFirst: boolean, isRetriedLater: boolean][] = [
    [createRefusal('rate_limited', 429), true, true],
    [createRefusal('control_plane_unavailable', 503), true, true],
    [createRefusal('box_unreachable', 502), true, true],
    [HIDDEN, true, true],
    [createRefusal('unauthorized', 401), false, false],
    [createRefusal('not_found', 404), false, false],
    [createRefusal('box_not_running', 409), false, false],
    // When a connection was lost, the coordinator may still count it.
    [createRefusal('customer_session_limit', 429), false, true],
    // Of a proxy, while the coordinator restarts.
    [createRefusal('invalid_response', 404), false, true],
  ]
  for (const [refusal, isRetriedFirst, isRetriedLater] of cases) {
    const { code } = refusal
    const expect = (isRetried: boolean, connections: number) => ({
      code: isRetried ? null : code,
      connections: isRetried ? connections + 1 : connections,
    })
    t.match(await run([refusal]), expect(isRetriedFirst, 1), `${code} first`)
    t.match(await run(['lost', refusal]), expect(isRetriedLater, 2), `${code} later`)
  }
})

t.test('errors that arrive as messages', async (t) => {
  for (const code of ['box_unreachable', 'control_plane_unavailable'])
    t.match(await run([{ code }]), { connections: 2, code: null }, code)
  for (const code of ['invalid_request', 'exec_failed', 'not_found', 'of_tomorrow'])
    t.match(await run([{ code }]), { connections: 1, code }, code)
})

t.test('a request says why a connection was refused, and whether the coordinator responds', async (t) => {
  const notFound = createRefusal('not_found', 404)
  t.match(await run([HIDDEN], { check: () => Promise.reject(notFound) }), {
    connections: 1,
    code: 'not_found',
  })
  t.match(await run([HIDDEN], { check: async () => undefined }), { connections: 2, code: null })

  const hidesPings = { reportsPings: false }
  t.match(await run(['silent']), { connections: 2, code: null }, 'without a ping, the connection is lost')
  const responds = { ...hidesPings, check: async () => undefined }
  t.match(await run(['silent'], responds), { connections: 1, isOver: false }, 'the command prints nothing')
  const silent = { ...hidesPings, check: () => Promise.reject(HIDDEN) }
  t.match(await run(['silent'], silent), { connections: 2, code: null })
})
