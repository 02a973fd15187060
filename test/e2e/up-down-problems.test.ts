// box up when the coordinator cannot start, and box down when a box stops slowly.

import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { listBoxPids } from '../support/find-agent-process.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createDataDir } from './up-down-support.ts'

t.test('down while another down waits for a slow box', async (t) => {
  const { dataDir, box } = createDataDir(t)
  await box(['up'])
  const { id, hostname } = await waitUntil('the box runs', async () => {
    const [first] = JSON.parse((await box(['ls', '--json'])).stdout).boxes
    return first.observedState === 'running' && first
  })
  const ignoreTerm = `setsid sh -c "trap '' TERM; echo ready >trapped; sleep 600" >/dev/null 2>&1 &`
  await box(['exec', hostname, '--', ignoreTerm])
  await waitUntil('the box ignores SIGTERM', async () => {
    return (await box(['exec', hostname, '--', 'cat', 'trapped'])).code === 0
  })
  const offset = readFileSync(join(dataDir, 'coordinator.log')).length
  const readLog = () => readFileSync(join(dataDir, 'coordinator.log')).subarray(offset).toString()
  const first = box(['down'])
  await waitUntil('the coordinator suspends its boxes', () => readLog().includes('Suspending'))
  const second = await box(['down'])
  t.match([await first, second], [{ code: 0 }, { code: 0 }])
  t.match(readLog(), `Suspended: ${hostname}.`, 'the coordinator was not interrupted')
  t.same(listBoxPids(id), [])
})

t.test('up prints why the coordinator did not start', async (t) => {
  const { dataDir, box } = createDataDir(t)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.teardown(() => other.close())
  const { port } = other.address() as AddressInfo
  t.match(await box(['up'], { BOXWOOD_LISTEN: `127.0.0.1:${port}` }), {
    code: 1,
    stdout: '',
    stderr: new RegExp(
      `^box: The coordinator did not start \\(exit code 1\\)\\.\\nThe coordinator cannot listen on 127\\.0\\.0\\.1:${port}: .*\\n` +
        `The log is in ${join(dataDir, 'coordinator.log')}\\.\\n$`,
    ),
  })
  t.match(await box(['up'], { BOXWOOD_SNAPSHOT_LIMIT: '-1' }), {
    code: 1,
    stderr: /\(exit code 2\)\.\nBOXWOOD_SNAPSHOT_LIMIT must/,
  })
  t.notOk(existsSync(join(dataDir, 'coordinator.json')))
})
