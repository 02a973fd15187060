// The protocol of terminals against a fake WebSocket: output and input continue over lost connections, each byte once.

import { mock } from 'node:test'
import t from 'tap'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import type { SocketHandlers } from '../../../client/http/socket.ts'
import { openTerminal, type TerminalState } from '../../../dashboard/api/terminal-connection.ts'
import type { ServerMessage } from '../../../shared/api/attach.ts'
import type { ErrorCode } from '../../../shared/errors.ts'

type FakeSocket = SocketHandlers & {
  query: Record<string, unknown>
  texts: { type: string; stdoutOffset?: number }[]
  input: string
  isClosed: boolean
  /** The server closes the connection, or refuses it. */
  close(): void
}

type FixtureOptions = {
  size?: { cols: number; rows: number } | null
  isRefused?: boolean
  checkSession?: () => Promise<void>
}

mock.timers.enable({ apis: ['setTimeout'] })
t.after(() => mock.timers.reset())

/** Promises and the sink continue. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
}

function createFixture({
  size = null,
  isRefused = false,
  checkSession = async () => undefined,
}: FixtureOptions = {}) {
  const sockets: FakeSocket[] = []
  const states: TerminalState[] = []
  const shown = { text: '', size: { cols: 80, rows: 24 } }
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
  const connection = openTerminal({
    session: 'main',
    client: 'c1',
    size,
    connect(query, handlers, signal) {
      const known = Object.entries(query).filter(([, value]) => value !== undefined)
      const socket: FakeSocket = {
        ...handlers,
        query: Object.fromEntries(known),
        texts: [],
        input: '',
        isClosed: false,
        close: () => handlers.onClose(1006),
      }
      sockets.push(socket)
      const close = () => {
        if (!socket.isClosed) handlers.onClose(1000)
        socket.isClosed = true
      }
      signal.addEventListener('abort', close)
      if (isRefused)
        return Promise.reject(createError({ code: 'no_response', message: 'Refused.', status: 0 }))
      const opened = {
        send(data: string | Uint8Array) {
          if (typeof data === 'string') socket.texts.push(JSON.parse(data))
          else socket.input += decode(data.subarray(1))
        },
        close,
        reportsPings: false,
      }
      handlers.onOpen?.(opened)
      return Promise.resolve(opened)
    },
    checkSession,
    sink: {
      async write(_channel, bytes) {
        shown.text += decode(bytes)
      },
      async drawScreen(bytes, { cols, rows }) {
        Object.assign(shown, { text: decode(bytes), size: { cols, rows } })
      },
      resize({ cols, rows }) {
        shown.size = { cols, rows }
      },
    },
    onState: (state) => states.push(state),
  })
  const last = () => {
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('there is no socket')
    return socket
  }
  const send = async (message: ServerMessage) => {
    last().onMessage(JSON.stringify(message))
    await settle()
  }
  const sendOutput = async (text: string) => {
    last().onMessage(new Uint8Array(Buffer.from(`\u0001${text}`)))
    await settle()
  }
  const attach = (stdoutOffset: number, stdinOffset = 0) =>
    send({ type: 'attached', session: 'main', stdinOffset, stdoutOffset, stderrOffset: 0 })
  const sendScreen = async (text: string, stdoutOffset: number) => {
    await send({ type: 'screen', bytes: text.length, stdoutOffset, stderrOffset: 0, cols: 100, rows: 30 })
    if (text !== '') await sendOutput(text)
  }
  /** The connection is lost. */
  const lose = async () => {
    last().close()
    await settle()
  }
  const runTimers = async () => {
    mock.timers.tick(10_000)
    await settle()
  }
  const reconnect = async () => {
    connection.reconnect()
    await settle()
  }
  const state = () => states.at(-1)
  return {
    connection,
    sockets,
    states,
    state,
    shown,
    last,
    send,
    sendOutput,
    attach,
    sendScreen,
    lose,
    runTimers,
    reconnect,
  }
}

t.test(
  'a lost connection continues at the offset, and an incomplete screen is requested again',
  async (t) => {
    const { last, send, sendOutput, attach, sendScreen, lose, reconnect, shown, runTimers, state } =
      createFixture({ size: { cols: 90, rows: 20 } })
    t.same(last().query, { session: 'main', client: 'c1', create: 'never', cols: 90, rows: 20 })
    await attach(10)
    await send({ type: 'screen', bytes: 6, stdoutOffset: 10, stderrOffset: 0, cols: 90, rows: 20 })
    await sendOutput('scr')
    t.equal(shown.text, '')
    await lose()
    t.equal(state()?.type, 'lost')
    await runTimers()
    t.notOk('offset' in last().query, 'the screen is incomplete')
    await attach(12)
    await sendScreen('$ ', 12)
    await sendOutput('one')
    t.same(shown, { text: '$ one', size: { cols: 100, rows: 30 } })
    const cut = last()
    await lose()
    cut.onMessage(new Uint8Array(Buffer.from('\u0001late')))
    await runTimers()
    t.equal(last().query.offset, 15)
    await attach(15)
    await sendOutput('two')
    t.equal(shown.text, '$ onetwo')
    const replaced = last()
    await reconnect()
    t.ok(replaced.isClosed)
    await attach(900)
    await sendOutput('x')
    t.equal(shown.text, '$ onetwo', 'output after a gap waits for the screen')
    await sendScreen('screen', 901)
    t.equal(shown.text, 'screen')
  },
)

t.test('a screen in the middle of the output replaces it', async (t) => {
  const { sendOutput, attach, sendScreen, lose, reconnect, shown, last } = createFixture()
  await attach(0)
  await sendScreen('', 0)
  await sendOutput('abc')
  await sendScreen('new', 5_000_000)
  await sendOutput('def')
  t.equal(shown.text, 'newdef')
  await lose()
  await reconnect()
  t.equal(last().query.offset, 5_000_003)
})

t.test('input is sent once, also what is typed without a connection', async (t) => {
  const { connection, last, send, attach, sendScreen, lose, reconnect } = createFixture()
  connection.write('early')
  await attach(0, 7)
  await sendScreen('', 0)
  t.equal(last().input, 'early')
  connection.write('Later')
  await send({ type: 'stdin', offset: 10 })
  await lose()
  connection.write('!')
  await reconnect()
  t.equal(last().input, '', 'nothing is sent before the message attached')
  await attach(0, 14)
  t.equal(last().input, 'ter!', 'the box has accepted seven bytes')
  connection.write('x'.repeat(1024 * 1024))
  t.ok(last().input.length < 1024 * 1024, 'the rest waits for the window')
  await send({ type: 'stdin', offset: 18 + 64 * 1024 })
  t.equal(last().input.length, 4 + 1024 * 1024)
})

t.test('input continues where the box has lost a part of it', async (t) => {
  const { connection, last, send, attach, lose, reconnect } = createFixture()
  await attach(0)
  connection.write('lost')
  await send({ type: 'stdin', offset: 4 })
  await lose()
  await reconnect()
  await attach(0, 0)
  connection.write('kept')
  t.equal(last().input, 'kept')
})

t.test('displayed output is acknowledged', async (t) => {
  const { last, sendOutput, attach, sendScreen } = createFixture()
  await attach(5)
  await sendScreen('s', 5)
  for (let count = 0; count < 9; count += 1) await sendOutput('x'.repeat(60_000))
  const acks = last().texts.flatMap(({ type, stdoutOffset }) => (type === 'ack' ? [stdoutOffset] : []))
  t.same(acks, [5, 540_005])
})

t.test('sizes, a stopping coordinator, a hidden tab and detaching', async (t) => {
  const { connection, sockets, last, send, attach, sendScreen, lose, shown, runTimers, state } =
    createFixture({
      size: { cols: 80, rows: 24 },
    })
  await attach(0)
  await sendScreen('', 0)
  connection.resize({ cols: 50, rows: 10 })
  t.match(last().texts.at(-1), { type: 'resize', cols: 50, rows: 10 })
  await send({ type: 'resized', cols: 120, rows: 40 })
  t.same(shown.size, { cols: 120, rows: 40 })
  await send({ type: 'reconnect' })
  t.match(state(), { type: 'lost', error: { code: 'control_plane_unavailable' } })
  await runTimers()
  t.match(last().query, { cols: 50, rows: 10, offset: 0 })
  connection.resize({ cols: 60, rows: 12 })
  await attach(0)
  t.match(last().texts.at(-1), { type: 'resize', cols: 60 }, 'the size has changed while connecting')
  connection.pause()
  t.ok(last().isClosed)
  await runTimers()
  t.equal(sockets.length, 2, 'a hidden tab does not connect')
  connection.resume()
  await runTimers()
  await attach(0)
  connection.detach()
  t.equal(last().texts.at(-1)?.type, 'detach')
  await lose()
  await runTimers()
  t.equal(sockets.length, 3)
  t.equal(state()?.type, 'detached')
})

t.test('the exit, and errors', async (t) => {
  const exited = createFixture()
  await exited.attach(0)
  await exited.sendScreen('bye', 3)
  await exited.send({
    type: 'exit',
    status: 'exited',
    exitCode: 3,
    signal: null,
    timedOut: false,
    stdoutOffset: 3,
    stderrOffset: 0,
  })
  t.match(exited.state(), { type: 'exited', exit: { exitCode: 3 } })
  t.equal(exited.last().texts.at(-1)?.type, 'exitReceived')
  t.equal(exited.shown.text, 'bye')

  const cases: [code: ErrorCode, state: string][] = [
    ['box_unreachable', 'lost'],
    ['invalid_request', 'failed'],
  ]
  for (const [code, expected] of cases) {
    const { attach, send, state } = createFixture()
    await attach(0)
    await send({ type: 'error', code, message: 'No.' })
    t.match(state(), { type: expected, error: { code } }, code)
  }
})

t.test('a refused connection: the reason decides whether the next attempt follows', async (t) => {
  const cases: [BoxwoodError | null, string][] = [
    [null, 'lost'],
    [createError({ code: 'no_response', message: 'None.', status: 0 }), 'lost'],
    [createError({ code: 'box_unreachable', message: 'None.', status: 502 }), 'lost'],
    [createError({ code: 'not_found', message: 'The session has ended.', status: 404 }), 'failed'],
    [createError({ code: 'box_not_running', message: 'Suspended.', status: 409 }), 'failed'],
  ]
  for (const [error, expected] of cases) {
    const { connection, state, runTimers, sockets } = createFixture({
      isRefused: true,
      async checkSession() {
        if (error !== null) throw error
      },
    })
    await settle()
    t.equal(state()?.type, expected, String(error?.code))
    await runTimers()
    t.equal(sockets.length, expected === 'lost' ? 2 : 1)
    if (expected === 'lost') {
      connection.detach()
      continue
    }
    connection.pause()
    connection.resume()
    await settle()
    t.equal(sockets.length, 1, 'a page that is shown again does not attach')
    connection.reopen()
    await settle()
    t.equal(sockets.length, 2, 'the user attaches again')
  }
})
