// What an agent sends is masked where a proxy may be on the way, and arrives as it is in any case.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { needsMask } from '../../../agent/tunnel/websocket.ts'
import { until } from '../exec/exec-app.ts'
import { dialRawServer } from './raw-server.ts'

t.test('a mask is needed on plain connections to elsewhere', async (t) => {
  for (const [url, needed] of Object.entries({
    'http://coordinator.example/agent/tunnel': true,
    'http://192.0.2.1:3000': true,
    'http://127.0.0.1.example': true,
    'http://127.example': true,
    'http://localhost.example': true,
    'http://0.0.0.0': true,
    'http://[2001:db8::1]': true,
    'http://127.0.0.1:3000': false,
    'http://127.8.9.1': false,
    'http://localhost:3000': false,
    'http://[::1]:3000': false,
    'https://coordinator.example': false,
    'https://192.0.2.1': false,
  }))
    t.equal(needsMask(url), needed, url)
})

/** Sends the text to a server on this machine; gives the frame as it went and the message that came of it. */
async function sendOne(t: Test, host: string, text: string) {
  const { ws, messages, raw } = await dialRawServer(t, host)
  await once(ws, 'open')
  ws.send(Buffer.from(text))
  await until('it has come', () => messages.length === 1)
  return { frame: raw(), message: String(messages[0]) }
}

const TEXT = 'the same at both ends, and more than a few bytes of it'

t.test('without a mask the bytes go as they are', async (t) => {
  const { frame, message } = await sendOne(t, '127.0.0.1', TEXT)
  t.equal(message, TEXT)
  t.same([...frame.subarray(0, 6)], [0x82, 0x80 | TEXT.length, 0, 0, 0, 0])
  t.equal(frame.subarray(6).toString(), TEXT)
})

t.test('with one they do not', async (t) => {
  const { frame, message } = await sendOne(t, '0.0.0.0', TEXT)
  t.equal(message, TEXT)
  t.same([...frame.subarray(0, 2)], [0x82, 0x80 | TEXT.length])
  t.notSame([...frame.subarray(2, 6)], [0, 0, 0, 0])
  t.equal(frame.length, 6 + TEXT.length)
  t.notOk(frame.includes('the same'))
})
