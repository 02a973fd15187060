// The resuming terminal draws the screen also when each of its connections is cut before the screen has arrived.
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { type WebSocket, WebSocketServer } from 'ws'
import type { ServerMessage } from '../../shared/api/attach.ts'
import { encodeChunk } from '../../shared/attach-format.ts'
import { openResumingTerminal } from './resuming-terminal.ts'
import { describeLines } from './terminal-screen.ts'

const SIZE = { cols: 80, rows: 24 }
const position = (stdoutOffset: number) => ({ stdoutOffset, stderrOffset: 0 })
const attached = (stdoutOffset: number): ServerMessage => ({
  type: 'attached',
  stdinOffset: 0,
  ...position(stdoutOffset),
})
const screen = (stdoutOffset: number, bytes: number): ServerMessage => ({
  type: 'screen',
  bytes,
  ...position(stdoutOffset),
  ...SIZE,
})
const exit = (stdoutOffset: number): ServerMessage => ({
  type: 'exit',
  status: 'exited',
  exitCode: 0,
  signal: null,
  timedOut: false,
  ...position(stdoutOffset),
})

/** What the server sends on one connection before it closes the connection. A string is output, or a part of a screen. */
type Connection = (ServerMessage | string)[]

/** @returns the offset that each connection requested, and the lines of the terminal after the exit */
async function runTerminal(t: Test, connections: Connection[]) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  t.teardown(() => server.close())
  await once(server, 'listening')
  const requested: (string | null)[] = []
  server.on('connection', (ws: WebSocket, request) => {
    const messages = connections[requested.length] ?? []
    requested.push(new URL(request.url ?? '', 'http://localhost').searchParams.get('offset'))
    for (const message of messages)
      ws.send(
        typeof message === 'string' ? encodeChunk('stdout', Buffer.from(message)) : JSON.stringify(message),
      )
    ws.close(1011)
  })
  const { port } = server.address() as AddressInfo
  const terminal = openResumingTerminal(() => `http://127.0.0.1:${port}`, {}, 'work')
  t.teardown(() => terminal.close())
  await terminal.waitForExit()
  await terminal.flush()
  return { requested, lines: describeLines(terminal.terminal).filter((line) => line !== '') }
}

t.test('cut before the first screen', async (t) => {
  const { requested, lines } = await runTerminal(t, [
    [],
    [attached(21)],
    [attached(21), screen(21, 6)],
    [attached(21), screen(21, 6), 'scr'],
    [attached(21), screen(21, 6), 'screen'],
    [attached(21), '+'],
    [attached(22), exit(22)],
  ])
  t.same(requested, [null, null, null, null, null, '21', '22'])
  t.same(lines, ['screen+'])
})

t.test('cut before the screen that replaces output which is no longer stored', async (t) => {
  const { requested, lines } = await runTerminal(t, [
    [attached(0), screen(0, 0), 'old'],
    [attached(500)],
    [attached(500), screen(500, 6), 'screen', '+'],
    [attached(501), exit(501)],
  ])
  t.same(requested, [null, '3', null, '501'])
  t.same(lines, ['screen+'])
})
