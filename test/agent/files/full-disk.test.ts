// An upload to a full disk fails with the operating system's error message, keeps the old file and leaves no temporary file.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { toFileError } from '../../../agent/files/errors.ts'
import { writeBody } from '../../../agent/files/temp-file.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { createBody } from './support.ts'

const MiB = 1024 * 1024

t.test('reports a file size limit that is reached during an upload', async (t) => {
  const fixture = fileURLToPath(new URL('fixtures/upload-beyond-size-limit.ts', import.meta.url))
  // A file size limit works on every machine. dash counts in units of 512 bytes, bash in units of 1024.
  const child = spawn('sh', ['-c', 'ulimit -f 512; exec "$0" "$1"', process.execPath, fixture], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [output] = await Promise.all([text(child.stdout), once(child, 'close')])
  t.match(JSON.parse(output), {
    status: 502,
    code: 'exec_failed',
    message: 'file: file too large.',
    content: 'old',
    names: ['file'],
  })
})

const diskFullError = Object.assign(new Error('ENOSPC: no space left on device, write'), {
  code: 'ENOSPC',
  errno: -28,
})
const countBytes = (chunks: readonly Buffer[]) => chunks.reduce((sum, { length }) => sum + length, 0)

t.test('continues after a partial write, until the disk reports ENOSPC', async (t) => {
  const content = randomBytes(3 * MiB)
  const written: Buffer[] = []
  let isFull = false
  const disk = {
    writev: async (chunks: readonly Buffer[]) => {
      if (isFull) throw diskFullError
      const accepted = Buffer.concat(chunks)
      const bytesWritten = Math.ceil(accepted.length / 2)
      written.push(Buffer.from(accepted.subarray(0, bytesWritten)))
      isFull = countBytes(written) > 2.5 * MiB
      return { bytesWritten }
    },
  }
  const body = createBody(
    [0, 1, 2].map((n) => Buffer.from(content.subarray(n * MiB, (n + 1) * MiB))),
    async () => undefined,
  )
  await t.rejects(writeBody(disk, body, LIMITS.transferBytes), diskFullError)
  const bytes = Buffer.concat(written)
  t.ok(bytes.length > 2.5 * MiB)
  t.ok(bytes.equals(content.subarray(0, bytes.length)), 'the rest of a partial write is written next')
  t.match(toFileError(diskFullError, 'file'), {
    code: 'exec_failed',
    status: 502,
    message: 'file: no space left on device.',
  })
})

t.test('receives during a write, but not more than the next write', async (t) => {
  const firstWrite = Promise.withResolvers<{ bytesWritten: number }>()
  const writes: number[] = []
  const disk = {
    writev: async (chunks: readonly Buffer[]) => {
      writes.push(countBytes(chunks))
      return writes.length === 1 ? firstWrite.promise : { bytesWritten: countBytes(chunks) }
    },
  }
  const chunks = Array.from({ length: 30 }, () => Buffer.alloc(MiB / 8))
  let requested = 0
  async function* createChunks() {
    for (const chunk of chunks) {
      requested += 1
      yield chunk
    }
  }
  const size = writeBody(disk, createChunks(), LIMITS.transferBytes)
  await waitUntil('the next write is received', () => requested === 16)
  for (let i = 0; i < 100; i++) await setImmediate()
  t.equal(requested, 16, 'the sender waits')
  t.same(writes, [MiB])
  firstWrite.resolve({ bytesWritten: MiB })
  t.equal(await size, 3.75 * MiB)
  t.same(writes, [MiB, MiB, MiB, 0.75 * MiB])
  t.ok(
    chunks.every(({ length }) => length === 0),
    'a written chunk is freed',
  )
})

t.test('writes at most 1024 chunks at once, whose memory is larger than their bytes', async (t) => {
  const writes: number[] = []
  const disk = {
    writev: async (chunks: readonly Buffer[]) => {
      writes.push(chunks.length)
      return { bytesWritten: countBytes(chunks) }
    },
  }
  const body = createBody(
    Array.from({ length: 2500 }, () => Buffer.from('x')),
    async () => undefined,
  )
  t.equal(await writeBody(disk, body, LIMITS.transferBytes), 2500)
  t.same(writes, [1024, 1024, 452])
})
