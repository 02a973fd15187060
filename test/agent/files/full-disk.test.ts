// A disk that takes no more: the box's own words, the old file as it was, nothing left behind.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { fileError } from '../../../agent/files/errors.ts'
import { fill } from '../../../agent/files/staging.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { bodyOf } from './support.ts'

const MiB = 1024 * 1024

t.test('a real limit in the middle of an upload', async (t) => {
  const fixture = fileURLToPath(new URL('fixtures/limited-disk.ts', import.meta.url))
  // Every machine has this one: no file of this process grows beyond 512 KiB (dash counts in 512 bytes, bash in 1024).
  const child = spawn('sh', ['-c', 'ulimit -f 512; exec "$0" "$1"', process.execPath, fixture], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = await Promise.all([text(child.stdout), once(child, 'close')])
  t.match(JSON.parse(said), {
    status: 502,
    code: 'exec_failed',
    message: 'file: file too large.',
    old: 'old',
    names: ['file'],
  })
})

t.test('a disk that takes a part first and then says why', async (t) => {
  const taken: number[] = []
  const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
    code: 'ENOSPC',
    errno: -28,
  })
  const disk = {
    write: async (bytes: Buffer) => {
      if (taken.length === 2) throw full
      taken.push(bytes.length)
      return { bytesWritten: MiB / 2 + 1 }
    },
  }
  const body = bodyOf([Buffer.alloc(MiB), Buffer.alloc(MiB)], async () => undefined)
  await t.rejects(fill(disk, body, LIMITS.transferBytes), full)
  t.same(taken, [MiB, MiB / 2 - 1], 'what was not taken is written again')
  t.match(fileError(full, 'file'), {
    code: 'exec_failed',
    status: 502,
    message: 'file: no space left on device.',
  })
})
