// Readers that come and go, ten thousand of them, on a socket of the agent: nothing of them stays.
import { readdirSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import t from 'tap'
import { heapBytes } from '../../../support/heap.ts'
import { agent } from '../detached/support.ts'
import { until } from '../exec-app.ts'
import { countWatches } from './support.ts'

const OPENS = 10_000
const AT_ONCE = 20
const MiB = 1024 * 1024
/** A leak of 500 bytes for each reader would be more. */
const GROWTH_BYTES = 5 * MiB

const descriptors = () => readdirSync('/proc/self/fd').length

t.test('ten thousand readers of a process that runs on', { timeout: 90_000 }, async (t) => {
  const { app, start, get: find } = await agent(t)
  const { processId } = await start('echo here; sleep 300')
  const watching = countWatches(find(processId).logs.stdout)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo

  const head = `GET /exec/${processId}/stream HTTP/1.1\r\nhost: agent\r\n\r\n`
  let answered = 0
  /** Leaves after the first bytes, or right after asking. */
  const visit = (number: number): Promise<void> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1' })
      socket.on('error', () => undefined)
      socket.once('close', () => resolve())
      socket.once('data', () => {
        answered += 1
        socket.destroy()
      })
      socket.write(head, () => {
        if (number % 5 === 0) socket.destroy()
      })
    })
  let opened = 0
  const visits = async (last: number) => {
    const visitor = async () => {
      while (opened < last) await visit(opened++)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, visitor))
    await until('every reader is gone', () => watching() === 0)
  }

  await visits(1000)
  const [heap, files] = [await heapBytes(), descriptors()]
  await visits(1000 + OPENS)
  await until('every connection is closed', () => descriptors() <= files)
  const growth = (await heapBytes()) - heap
  t.ok(growth < GROWTH_BYTES, `${growth} bytes more after ${OPENS} readers`)
  t.ok(answered >= 0.8 * OPENS, `${answered} were answered`)
})
