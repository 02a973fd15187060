// An upload to a full disk fails with the operating system's error message, keeps the old file and leaves no temporary file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { toFileError } from '../../../agent/files/errors.ts'
import { writeBody } from '../../../agent/files/temp-file.ts'
import { LIMITS } from '../../../shared/limits.ts'
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

t.test('continues after a partial write, until the disk reports ENOSPC', async (t) => {
  const writes: number[] = []
  const diskFullError = Object.assign(new Error('ENOSPC: no space left on device, write'), {
    code: 'ENOSPC',
    errno: -28,
  })
  const disk = {
    write: async (bytes: Buffer) => {
      if (writes.length === 2) throw diskFullError
      writes.push(bytes.length)
      return { bytesWritten: MiB / 2 + 1 }
    },
  }
  const body = createBody([Buffer.alloc(MiB), Buffer.alloc(MiB)], async () => undefined)
  await t.rejects(writeBody(disk, body, LIMITS.transferBytes), diskFullError)
  t.same(writes, [MiB, MiB / 2 - 1], 'the rest of a partial write is written next')
  t.match(toFileError(diskFullError, 'file'), {
    code: 'exec_failed',
    status: 502,
    message: 'file: no space left on device.',
  })
})
