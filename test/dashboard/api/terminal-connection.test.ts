// The protocol of terminals against a fake WebSocket: output and input continue over lost connections, each byte once.

import t from 'tap'
import { type BoxwoodError, createError } from '../../../client/http/errors.ts'
import {
  TerminalConnection,
  type TerminalSocketHandlers,
  type TerminalState,
} from '../../../dashboard/api/terminal-connection.ts'
import type { ServerMessage } from '../../../shared/api/attach.ts'
import type { ErrorCode } from '../../../shared/errors.ts'

type FakeSocket = TerminalSocketHandlers & {
  query: Record<string, string>
  texts: { type: string; stdoutOffset?: number }[]
  input: string
  isClosed: boolean
}

function createFixture(checkSession: () => Promise<void> = async () => undefined) {
  const sockets: FakeSocket[] = []
  const states: TerminalState[] = []
  const timers: (() => void)[] = []
  const shown = { text: '', size: { cols: 80, rows: 24 } }
  /** Called when the emulator has displayed what it was given. */
  const displayed: (() => void)[] = []
  const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
  const connection = new TerminalConnection({
    session: 'main',
    client: 'c1',
    connect(query, handlers) {
      const socket: FakeSocket = { ...handlers, query, texts: [], input: '', isClosed: false }
      sockets.push(socket)
      return {
        send(data) {
          if (typeof data === 'string') socket.texts.push(JSON.parse(data))
          else socket.input += decode(data.subarray(1))
        },
        close() {
          socket.isClosed = true
        },
      }
    },
    checkSession,
    sink: {
      write(bytes, onDone) {
        shown.text += decode(bytes)
        displayed.push(onDone)
      },
      drawScreen(bytes, { cols, rows }, onDone) {
        Object.assign(shown, { text: decode(bytes), size: { cols, rows } })
        displayed.push(onDone)
      },
      resize({ cols, rows }) {
        shown.size = { cols, rows }
      },
    },
    onState: (state) => states.push(state),
    setTimer(run) {
      timers.push(run)
      return () => timers.splice(timers.indexOf(run), timers.includes(run) ? 1 : 0)
    },
    random: () => 0,
  })
  const last = () => {
    const socket = sockets.at(-1)
    if (socket === undefined) throw new Error('there is no socket')
    return socket
  }
  const send = (message: ServerMessage) => last().onText(JSON.stringify(message))
  const sendOutput = (text: string) => last().onBytes(new TextEncoder().encode(`\u0001${text}`))
  const attach = (stdoutOffset: number, stdinOffset = 0) =>
    send({ type: 'attached', session: 'main', stdinOffset, stdoutOffset, stderrOffset: 0 })
  const sendScreen = (text: string, stdoutOffset: number) => {
    send({ type: 'screen', bytes: text.length, stdoutOffset, stderrOffset: 0, cols: 100, rows: 30 })
    if (text !== '') sendOutput(text)
  }
  const runTimers = () => {
    for (const run of timers.splice(0)) run()
  }
  /** The refusal of a connection is checked with requests. */
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  const state = () => states.at(-1)
  return {
    connection,
    sockets,
    states,
    state,
    shown,
    displayed,
    last,
    send,
    sendOutput,
    attach,
    sendScreen,
    runTimers,
    settle,
  }
}

t.test(
  'a lost connection continues at the offset, and an incomplete screen is requested again',
  async (t) => {
    const { connection, last, send, sendOutput, attach, sendScreen, shown, runTimers, state } =
      createFixture()
    connection.open({ cols: 90, rows: 20 })
    t.same(last().query, { session: 'main', client: 'c1', create: 'never', cols: '90', rows: '20' })
    attach(10)
    send({ type: 'screen', bytes: 6, stdoutOffset: 10, stderrOffset: 0, cols: 90, rows: 20 })
    sendOutput('scr')
    t.equal(shown.text, '')
    last().onClose()
    t.equal(state()?.type, 'lost')
    runTimers()
    t.notOk('offset' in last().query, 'the screen is incomplete')
    attach(12)
    sendScreen('$ ', 12)
    sendOutput('one')
    t.same(shown, { text: '$ one', size: { cols: 100, rows: 30 } })
    const cut = last()
    cut.onClose()
    cut.onBytes(new TextEncoder().encode('\u0001late'))
    runTimers()
    t.equal(last().query.offset, '15')
    attach(15)
    sendOutput('two')
    t.equal(shown.text, '$ onetwo')
    connection.reconnect()
    t.ok(cut.isClosed)
    attach(900)
    sendOutput('x')
    t.equal(shown.text, '$ onetwo', 'output after a gap waits for the screen')
    sendScreen('screen', 901)
    t.equal(shown.text, 'screen')
  },
)

t.test('a screen in the middle of the output replaces it', async (t) => {
  const { connection, sendOutput, attach, sendScreen, shown, last } = createFixture()
  connection.open(null)
  attach(0)
  sendScreen('', 0)
  sendOutput('abc')
  sendScreen('new', 5_000_000)
  sendOutput('def')
  t.equal(shown.text, 'newdef')
  last().onClose()
  connection.reconnect()
  t.equal(last().query.offset, '5000003')
})

t.test('input is sent once, also what is typed without a connection', async (t) => {
  const { connection, last, send, attach, sendScreen } = createFixture()
  connection.open(null)
  connection.write('early')
  attach(0, 7)
  sendScreen('', 0)
  t.equal(last().input, 'early')
  connection.write('Later')
  send({ type: 'stdin', offset: 10 })
  last().onClose()
  connection.write('!')
  connection.reconnect()
  t.equal(last().input, '', 'nothing is sent before the message attached')
  attach(0, 14)
  t.equal(last().input, 'ter!', 'the box has accepted seven bytes')
  connection.write('x'.repeat(1024 * 1024))
  t.ok(last().input.length < 1024 * 1024, 'the rest waits for the window')
  send({ type: 'stdin', offset: 18 + 64 * 1024 })
  t.equal(last().input.length, 4 + 1024 * 1024)
})

t.test('displayed output is acknowledged', async (t) => {
  const { connection, last, sendOutput, attach, sendScreen, displayed } = createFixture()
  connection.open(null)
  attach(5)
  sendScreen('s', 5)
  for (let count = 0; count < 3; count += 1) sendOutput('x'.repeat(60_000))
  const acks = () => last().texts.flatMap(({ type, stdoutOffset }) => (type === 'ack' ? [stdoutOffset] : []))
  t.same(acks(), [])
  for (const done of displayed) done()
  t.same(acks(), [180_005])
})

t.test('sizes, a stopping coordinator, a hidden tab and detaching', async (t) => {
  const { connection, sockets, last, send, attach, sendScreen, shown, runTimers, state } = createFixture()
  connection.open({ cols: 80, rows: 24 })
  attach(0)
  sendScreen('', 0)
  connection.resize({ cols: 50, rows: 10 })
  t.match(last().texts.at(-1), { type: 'resize', cols: 50, rows: 10 })
  send({ type: 'resized', cols: 120, rows: 40 })
  t.same(shown.size, { cols: 120, rows: 40 })
  send({ type: 'reconnect' })
  t.match(state(), { type: 'lost', error: { code: 'control_plane_unavailable' } })
  runTimers()
  t.match(last().query, { cols: '50', rows: '10', offset: '0' })
  connection.resize({ cols: 60, rows: 12 })
  attach(0)
  t.match(last().texts.at(-1), { type: 'resize', cols: 60 }, 'the size has changed while connecting')
  connection.pause()
  t.ok(last().isClosed)
  last().onClose()
  runTimers()
  t.equal(sockets.length, 2, 'a hidden tab does not connect')
  connection.resume()
  attach(0)
  connection.detach()
  t.equal(last().texts.at(-1)?.type, 'detach')
  last().onClose()
  runTimers()
  t.equal(sockets.length, 3)
  t.equal(state()?.type, 'detached')
})

t.test('the exit, and errors', async (t) => {
  const exited = createFixture()
  exited.connection.open(null)
  exited.attach(0)
  exited.sendScreen('bye', 3)
  exited.send({
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
    const { connection, attach, send, state } = createFixture()
    connection.open(null)
    attach(0)
    send({ type: 'error', code, message: 'No.' })
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
    const { connection, last, state, settle, runTimers, sockets } = createFixture(async () => {
      if (error !== null) throw error
    })
    connection.open(null)
    last().onClose()
    await settle()
    t.equal(state()?.type, expected, String(error?.code))
    runTimers()
    t.equal(sockets.length, expected === 'lost' ? 2 : 1)
    if (expected === 'lost') continue
    connection.reopen()
    t.equal(sockets.length, 2, 'the user attaches again')
  }
})
