// Uploads and downloads a large file of random bytes, unchanged and without using memory in coordinator or agent.
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import type { Test } from 'tap'
import { startCoordinatorProcess } from './coordinator-process.ts'
import { findAgentPid, readResidentMiB } from './find-agent-process.ts'

const MiB = 1024 * 1024
/** Includes code and buffers that a process uses for the first time, and garbage. */
const MAX_GROWTH_MIB = 128

export async function testLargeFile(t: Test, sizeMiB: number): Promise<void> {
  const size = sizeMiB * MiB
  const coordinator = await startCoordinatorProcess(t)
  const box = await coordinator.waitForFirstBox()
  // The first request of any kind loads code, which is not memory of the transfer.
  await coordinator.exec(box.hostname, 'true')
  const pids = { coordinator: coordinator.pid, agent: findAgentPid(box.id) ?? 0 }
  const before = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, readResidentMiB(pid)]))
  const maximum: Record<string, number> = { ...before }
  const timer = setInterval(() => {
    for (const [name, pid] of Object.entries(pids))
      maximum[name] = Math.max(maximum[name] ?? 0, readResidentMiB(pid))
  }, 20)
  t.teardown(() => clearInterval(timer))

  const sentHash = createHash('sha256')
  const block = randomBytes(MiB)
  let remaining = size
  const body = new Readable({
    highWaterMark: MiB,
    read() {
      if (remaining === 0) return void this.push(null)
      remaining -= MiB
      // Incompressible, and with a different number in every page.
      for (let offset = 0; offset < MiB; offset += 4096)
        block.writeUInt32LE((remaining + offset) / 4096, offset)
      const chunk = Buffer.from(block)
      sentHash.update(chunk)
      this.push(chunk)
    },
  })
  const path = `/v1/box/${box.hostname}`
  const uploaded = await coordinator.send('PUT', `${path}/upload?path=large.bin`, body, {
    'content-length': size,
  })
  t.match(JSON.parse(Buffer.concat(await uploaded.toArray()).toString()), {
    type: 'file.uploaded',
    size,
  })

  const receivedHash = createHash('sha256')
  const download = await coordinator.send('GET', `${path}/download?path=large.bin`)
  t.equal(download.headers['content-length'], String(size))
  for await (const chunk of download) receivedHash.update(chunk)
  t.equal(receivedHash.digest('hex'), sentHash.digest('hex'))

  for (const name of ['coordinator', 'agent']) {
    const growth = (maximum[name] ?? 0) - (before[name] ?? 0)
    t.ok(growth < MAX_GROWTH_MIB, `the ${name} grew by ${growth.toFixed(1)} MiB`)
  }
}
