// Short messages and long ones arrive whole and in order, and a short one is the frame that ws would make of it.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { createMessageWriter } from '../../../agent/tunnel/message-writer.ts'
import { seeded } from '../../support/random.ts'
import { until } from '../exec/exec-app.ts'
import { dialRawServer } from './raw-server.ts'

async function open(t: Test, host = '127.0.0.1') {
  const dialed = await dialRawServer(t, host)
  const write = createMessageWriter(dialed.ws, dialed.url)
  await once(dialed.ws, 'open')
  return { ...dialed, write }
}

/** Around the lengths that are written differently, and the one from which ws sends. */
const LENGTHS = [0, 1, 125, 126, 127, 255, 256, 2047, 2048, 2049, 65_535, 65_536, 100_000]

t.test('it is the same frame', async (t) => {
  const mine = await open(t)
  const theirs = await open(t)
  for (const length of LENGTHS) {
    mine.write(Buffer.alloc(length, 'x'))
    theirs.ws.send(Buffer.alloc(length, 'x'))
  }
  const bytes = LENGTHS.reduce((sum, length) => sum + length, 0)
  for (const { raw } of [mine, theirs]) await until('all has come', () => raw().length > bytes)
  await until('as much as from ws', () => mine.raw().length === theirs.raw().length)
  t.ok(mine.raw().equals(theirs.raw()))
})

t.test('all arrive in order, whoever sends them, and who asks hears of each', async (t) => {
  for (const host of ['127.0.0.1', '0.0.0.0'])
    await t.test(host, async (t) => {
      const { ws, write, messages } = await open(t, host)
      const random = seeded(7)
      const wanted: Buffer[] = []
      let [asked, heard] = [0, 0]
      for (let at = 0; at < 300; at++) {
        const message = Buffer.alloc(LENGTHS[Math.floor(random() * LENGTHS.length)] ?? 0, `${at} `)
        wanted.push(Buffer.from(message))
        const way = Math.floor(random() * 3)
        if (way === 0) write(message)
        else if (way === 1) ws.send(message)
        else {
          asked++
          write(message, (error) => {
            heard += error ? 0 : 1
          })
        }
      }
      await until('all have come', () => messages.length === wanted.length)
      t.ok(Buffer.concat(messages).equals(Buffer.concat(wanted)))
      t.same(
        messages.map(({ length }) => length),
        wanted.map(({ length }) => length),
      )
      t.equal(heard, asked)
    })
})

t.test('what is sent is the writer’s to use again', async (t) => {
  const { write, messages } = await open(t)
  const message = Buffer.from('first')
  write(message)
  message.write('other')
  write(message)
  await until('both have come', () => messages.length === 2)
  t.same(messages.map(String), ['first', 'other'])
})

t.test('nothing follows the end', async (t) => {
  const { ws, write, messages, raw } = await open(t)
  write(Buffer.from('last'))
  const closed = once(ws, 'close')
  ws.close(1000)
  const end = 6 + 'last'.length + 6 + 2
  write(Buffer.from('late'))
  await closed
  t.same(messages.map(String), ['last'])
  t.equal(raw().length, end)
})
