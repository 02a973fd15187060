// The limit of concurrent requests of a key.

import t from 'tap'
import { limitsEnv } from '../support/limits-env.ts'
import { waitUntil } from '../support/wait-until.ts'
import { HIGH_EDGE_LIMITS, startCoordinatorWithBox } from './coordinator-with-box.ts'

t.test('limits concurrent requests', async (t) => {
  const env = limitsEnv({ ...HIGH_EDGE_LIMITS, edgeConcurrency: 2 })
  const { boxRequest, exec } = await startCoordinatorWithBox(t, { env })
  const running = [exec('sleep 3'), exec('sleep 3')]
  await waitUntil(
    'both slots are acquired',
    async () => (await boxRequest('POST', '/exec', { command: 'true' })).status === 429,
  )
  const rejected = await boxRequest('POST', '/exec', { command: 'true' })
  t.match(rejected, { status: 429, json: { ok: false, error: { code: 'rate_limited' } } })
  t.match(rejected.headers.get('retry-after'), /^[1-9]\d*$/)
  await Promise.all(running)
  t.match(await exec('echo free again'), { stdout: 'free again\n' })
})
