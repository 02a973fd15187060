// Clients that stop reading, or stop sending: nobody else notices, and nothing half-written is left.
import { request } from 'node:http'
import { Readable } from 'node:stream'
import t from 'tap'
import { agentPid, residentMiB } from '../support/agent-pid.ts'
import { startCoordinatorProcess, waitUntil } from '../support/coordinator-process.ts'

const MiB = 1024 * 1024

t.test('clients that misbehave', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { hostname, id } = await coordinator.waitForFirstBox()
  const path = `/v1/box/${hostname}`
  const pids = [coordinator.pid, agentPid(id) ?? 0]

  await t.test('readers of large downloads that do not read', async (t) => {
    await coordinator.exec(hostname, `head -c ${512 * MiB} /dev/zero > large`)
    const before = pids.map(residentMiB)
    const stalled = await Promise.all(
      Array.from({ length: 4 }, () => coordinator.send('GET', `${path}/download?path=large`)),
    )
    for (const download of stalled) download.pause()
    for (let i = 0; i < 20; i++)
      t.match(await coordinator.exec(hostname, `echo ${i}`), { stdout: `${i}\n` }, 'others are served')
    pids.forEach((pid, i) => {
      const growth = residentMiB(pid) - (before[i] ?? 0)
      t.ok(growth < 128, `2 GiB that nobody reads cost ${growth.toFixed(0)} MiB`)
    })
    const [slow, ...gone] = stalled
    for (const download of gone) download.destroy()
    let size = 0
    for await (const chunk of slow ?? Readable.from([])) size += chunk.length
    t.equal(size, 512 * MiB, 'one that goes on reading gets all of it')
  })

  for (const [how, length] of [
    ['with a declared length', 8 * MiB],
    ['chunked', null],
    ['small enough for the tunnel', 100_000],
  ] as const)
    await t.test(`an upload that ends short, ${how}`, async (t) => {
      await coordinator.exec(hostname, 'echo old > target')
      const upload = request(`${coordinator.url}${path}/upload?path=target`, {
        method: 'PUT',
        agent: false,
        headers: { ...coordinator.authHeaders(), ...(length === null ? {} : { 'content-length': length }) },
      })
      upload.on('error', () => undefined)
      upload.write(Buffer.alloc(Math.min(length ?? MiB, MiB) / 2))
      const staging = `ls -A | grep -c '^.boxwood-write' || true`
      await waitUntil(
        'the box is writing',
        async () => (await coordinator.exec(hostname, staging)).stdout === '1\n',
      )
      upload.destroy()
      await waitUntil(
        'the half is gone',
        async () => (await coordinator.exec(hostname, staging)).stdout === '0\n',
      )
      t.match(await coordinator.exec(hostname, 'cat target'), { stdout: 'old\n' })
    })
})
