// The connection to a terminal host that sends something unexpected, or that is none.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { HostConnection } from '../../../../agent/terminal/host/connection.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { encodeFrame, encodeHello, offsets, startFakeHost } from './support.ts'

const HELLO = { start: 0, end: 4, cols: 80, rows: 24 }

async function collectOutput(dir: string) {
  const { connection, state } = await HostConnection.open(dir)
  let output = ''
  connection.start({
    onOutput(bytes) {
      output += bytes
    },
    onWritten: () => undefined,
  })
  return { state, exit: await connection.exit, output }
}

t.test('the state, the output and the exit arrive in order', async (t) => {
  const dir = await startFakeHost(t, (socket) => {
    socket.write(encodeFrame(1, offsets(9), Buffer.from('a')))
    socket.write(encodeHello(HELLO))
    socket.write(encodeFrame(4, offsets(0), Buffer.from('text')))
    socket.end(encodeFrame(6, Buffer.from([2, 0, 0, 0, 0, 0, 0, 0]), offsets(5)))
  })
  const { state, exit, output } = await collectOutput(dir)
  t.match(state, { start: 0, end: 4, cols: 80, rows: 24 })
  t.same([...state.clients], [['a', 9]])
  t.match(exit, { exitCode: 2, finishedAt: 5 })
  t.equal(output, 'text')
})

t.test('output that is missing, double or beyond the limit ends the connection', async (t) => {
  const outputs = {
    missing: [encodeFrame(4, offsets(1), Buffer.from('x'))],
    double: [0, 0].map((offset) => encodeFrame(4, offsets(offset), Buffer.from('x'))),
    'beyond the limit': Array.from({ length: 64 }, (_, index) =>
      encodeFrame(4, offsets(index * 65_536), Buffer.alloc(65_536)),
    ),
  }
  for (const [name, frames] of Object.entries(outputs)) {
    const dir = await startFakeHost(t, (socket) => {
      socket.write(encodeHello(HELLO))
      // The host ignores the limits. It writes everything before it reads them.
      for (const frame of frames) socket.write(frame)
    })
    const { connection } = await HostConnection.open(dir)
    connection.setPaused(true)
    connection.start({ onOutput: () => undefined, onWritten: () => undefined })
    t.equal(await connection.exit, null, name)
  }
})

t.test('a host that sends no state is refused', async (t) => {
  const closing = await startFakeHost(t, (socket) => socket.end())
  await t.rejects(HostConnection.open(closing), /closed the connection/)
  const invalid = await startFakeHost(t, (socket) => socket.write(Buffer.alloc(8)))
  await t.rejects(HostConnection.open(invalid), /0 bytes/)
  const clients = await startFakeHost(t, (socket) => {
    for (let i = 0; i < 300; i++) socket.write(encodeFrame(1, offsets(0), Buffer.from(`c${i}`)))
  })
  await t.rejects(HostConnection.open(clients), /too many clients/)
})

t.test('the directory of a session is not a link, and its socket is no other file', async (t) => {
  const dir = await startFakeHost(t, (socket) => socket.write(encodeHello(HELLO)))
  const other = createTempDir(t, 'links')
  symlinkSync(dir, join(other, 'link'))
  await t.rejects(HostConnection.open(join(other, 'link')), { code: /ENOTDIR|ELOOP/ })
  mkdirSync(join(other, 'file'))
  writeFileSync(join(other, 'file/socket'), '')
  await t.rejects(HostConnection.open(join(other, 'file')), { code: 'ECONNREFUSED' })
  await t.rejects(HostConnection.open(join(other, 'missing')), { code: 'ENOENT' })
})
