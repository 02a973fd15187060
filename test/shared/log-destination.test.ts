// A log that cannot be written does not stop the program, and continues when it can be written again.
import { pino } from 'pino'
import t from 'tap'
import { createLogDestination } from '../../shared/log-destination.ts'

/** A file on a disk with this much space. */
function createDisk(freeBytes: number) {
  const disk = { freeBytes, text: '' }
  const write = (bytes: Uint8Array) => {
    if (disk.freeBytes === 0) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    const written = bytes.subarray(0, disk.freeBytes)
    disk.freeBytes -= written.length
    disk.text += Buffer.from(written).toString()
    return written.length
  }
  return { disk, write }
}

t.test('drops lines on a full disk and prints their number afterwards', async (t) => {
  const { disk, write } = createDisk(4)
  const destination = createLogDestination(write)
  destination.write('first\n')
  destination.write('second\n')
  t.equal(disk.text, 'firs')
  disk.freeBytes = 1000
  destination.write('third\n')
  destination.write('fourth\n')
  const [partial, notice, ...others] = disk.text.split('\n')
  t.equal(partial, 'firs')
  t.match(JSON.parse(notice ?? ''), { level: 50, droppedLines: 2 })
  t.same(others, ['third', 'fourth', ''])
})

t.test('is a destination of pino', async (t) => {
  const { disk, write } = createDisk(1000)
  pino({ level: 'info' }, createLogDestination(write)).info('message')
  t.match(JSON.parse(disk.text), { level: 30, msg: 'message' })
})
