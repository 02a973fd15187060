// 1 GiB of random bytes goes up and comes down unchanged, and costs neither coordinator nor agent memory.
import { createHash, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import t from 'tap'
import { agentPid, residentMiB } from '../support/agent-pid.ts'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'

const MiB = 1024 * 1024
const SIZE = 1024 * MiB
/** What a process may grow by, with everything it had not used before. */
const GROWTH_MIB = 64

t.test('1 GiB there and back', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const box = await coordinator.waitForFirstBox()
  // What any first request loads is not what a transfer costs.
  await coordinator.exec(box.hostname, 'true')
  const pids = { coordinator: coordinator.pid, agent: agentPid(box.id) ?? 0 }
  const before = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, residentMiB(pid)]))
  const most: Record<string, number> = { ...before }
  const timer = setInterval(() => {
    for (const [name, pid] of Object.entries(pids)) most[name] = Math.max(most[name] ?? 0, residentMiB(pid))
  }, 20)
  t.teardown(() => clearInterval(timer))

  const sent = createHash('sha256')
  const block = randomBytes(MiB)
  let left = SIZE
  const body = new Readable({
    highWaterMark: MiB,
    read() {
      if (left === 0) return void this.push(null)
      left -= MiB
      // Random enough that nothing on the way can make it smaller, and no page of it is like another one.
      for (let at = 0; at < MiB; at += 4096) block.writeUInt32LE((left + at) / 4096, at)
      const piece = Buffer.from(block)
      sent.update(piece)
      this.push(piece)
    },
  })
  const path = `/v1/box/${box.hostname}`
  const uploaded = await coordinator.send('PUT', `${path}/upload?path=large.bin`, body, {
    'content-length': SIZE,
  })
  t.match(JSON.parse(Buffer.concat(await uploaded.toArray()).toString()), {
    type: 'file.uploaded',
    size: SIZE,
  })

  const received = createHash('sha256')
  const download = await coordinator.send('GET', `${path}/download?path=large.bin`)
  t.equal(download.headers['content-length'], String(SIZE))
  for await (const chunk of download) received.update(chunk)
  t.equal(received.digest('hex'), sent.digest('hex'))

  for (const name of ['coordinator', 'agent']) {
    const growth = (most[name] ?? 0) - (before[name] ?? 0)
    t.ok(growth < GROWTH_MIB, `the ${name} grew by ${growth.toFixed(1)} MiB`)
  }
})
