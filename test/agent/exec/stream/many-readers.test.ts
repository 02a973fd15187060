// Ten thousand readers that connect to a running process and disconnect leave nothing behind in the agent.
import { readdirSync } from 'node:fs'
import t from 'tap'
import { measureHeapBytes } from '../../../support/heap.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { createAgent } from '../detached/support.ts'
import { countWatchers, openFrames } from './support.ts'

const READERS = 10_000
const CONCURRENT = 20
const MiB = 1024 * 1024
/** A leak of 500 bytes per reader exceeds this. */
const MAX_GROWTH_BYTES = 5 * MiB

const openDescriptors = () => readdirSync('/proc/self/fd').length

t.test('ten thousand disconnected readers leak no memory or descriptors', async (t) => {
  const { start, getProcess } = await createAgent(t)
  const { processId } = await start('echo here; sleep 300')
  const process = getProcess(processId)
  const watchers = countWatchers(process.logs.stdout)
  let received = 0

  /** Disconnects after the output, or immediately. */
  const readAndDisconnect = async (index: number) => {
    const reader = openFrames(process)
    if (index % 5 !== 0) {
      await reader.next()
      if ((await reader.next())?.event === 'stdout') received += 1
    }
    const pending = reader.next()
    await reader.close()
    await pending
  }
  let opened = 0
  const openUntil = async (last: number) => {
    const worker = async () => {
      while (opened < last) await readAndDisconnect(opened++)
    }
    await Promise.all(Array.from({ length: CONCURRENT }, worker))
    await waitUntil('no reader is left', () => watchers() === 0)
  }

  await openUntil(1000)
  const heapBefore = await measureHeapBytes()
  const descriptorsBefore = openDescriptors()
  await openUntil(1000 + READERS)
  await waitUntil('every descriptor is closed', () => openDescriptors() <= descriptorsBefore)
  const growth = (await measureHeapBytes()) - heapBefore
  t.ok(growth < MAX_GROWTH_BYTES, `the heap grew by ${growth} bytes`)
  t.ok(received >= 0.8 * READERS, `${received} readers got the output`)
})
