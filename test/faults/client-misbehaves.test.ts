// Clients that stop reading or stop sending: other clients are unaffected, and no partial file remains.
import { request } from 'node:http'
import { Readable } from 'node:stream'
import t from 'tap'
import { startCoordinatorProcess } from '../support/coordinator-process.ts'
import { findAgentPid, readResidentMiB } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const MiB = 1024 * 1024
/** An eighth of the 2 GiB that the clients do not read. Includes garbage. */
const MAX_GROWTH_MIB = 256

t.test('clients that stop reading or sending do not affect other clients', async (t) => {
  const coordinator = await startCoordinatorProcess(t)
  const { hostname, id } = await coordinator.waitForFirstBox()
  const path = `/v1/box/${hostname}`
  const pids = [coordinator.pid, findAgentPid(id) ?? 0]

  await t.test('unread large downloads use little memory, and other requests are served', async (t) => {
    await coordinator.exec(hostname, `head -c ${512 * MiB} /dev/zero > large`)
    const before = pids.map(readResidentMiB)
    const downloads = await Promise.all(
      Array.from({ length: 4 }, () => coordinator.send('GET', `${path}/download?path=large`)),
    )
    for (const download of downloads) download.pause()
    for (let i = 0; i < 20; i++)
      t.match(
        await coordinator.exec(hostname, `echo ${i}`),
        { stdout: `${i}\n` },
        'another request is served',
      )
    pids.forEach((pid, i) => {
      const growth = readResidentMiB(pid) - (before[i] ?? 0)
      t.ok(growth < MAX_GROWTH_MIB, `2 GiB of unread downloads take ${growth.toFixed(0)} MiB of memory`)
    })
    const [slow, ...disconnecting] = downloads
    for (const download of disconnecting) download.destroy()
    let size = 0
    for await (const chunk of slow ?? Readable.from([])) size += chunk.length
    t.equal(size, 512 * MiB, 'a client that resumes reading gets the complete file')
  })

  for (const [kind, length] of [
    ['with a declared length', 8 * MiB],
    ['with chunked encoding', null],
    ['small enough for the tunnel', 100_000],
  ] as const)
    await t.test(`an upload that ends early keeps the old file (${kind})`, async (t) => {
      await coordinator.exec(hostname, 'echo old > target')
      const upload = request(`${coordinator.url}${path}/upload?path=target`, {
        method: 'PUT',
        agent: false,
        headers: { ...coordinator.authHeaders(), ...(length === null ? {} : { 'content-length': length }) },
      })
      upload.on('error', () => undefined)
      upload.write(Buffer.alloc(Math.min(length ?? MiB, MiB) / 2))
      const countTempFiles = `ls -A | grep -c '^.boxwood-write' || true`
      await waitUntil(
        'the agent writes the temporary file',
        async () => (await coordinator.exec(hostname, countTempFiles)).stdout === '1\n',
      )
      upload.destroy()
      await waitUntil(
        'the temporary file is removed',
        async () => (await coordinator.exec(hostname, countTempFiles)).stdout === '0\n',
      )
      t.match(await coordinator.exec(hostname, 'cat target'), { stdout: 'old\n' })
    })
})
