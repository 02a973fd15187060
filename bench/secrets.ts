// Measures requests of a box to the host of a secret through the broker, against direct requests of the same program.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startCoordinator } from '../coordinator/server/app.ts'
import { loadConfig } from '../coordinator/server/config.ts'
import { waitUntil } from '../test/support/wait-until.ts'
import { RAISED_LIMITS } from './support/edge-limits.ts'
import { terminate } from './support/processes.ts'
import type { SecretUpstream } from './support/secret-upstream.ts'
import { formatNumber, median, quantile, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const HOST = 'api.example.com'
const UPSTREAM = new URL('support/secret-upstream.ts', import.meta.url)
const CLIENT = new URL('support/secret-client.mjs', import.meta.url)

type Candidate = 'direct' | 'brokered'
/** Milliseconds. */
type Durations = { kept: number[]; new: number[]; download: number[] }
type Measured = { results: Record<Candidate, Durations>; downloadBytes: number }

async function measure(): Promise<Measured> {
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-bench-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  // The user of the box reads the certificate in it.
  await chmod(dir, 0o711)
  const child = fork(fileURLToPath(UPSTREAM), [HOST])
  cleanup.defer(() => terminate(child))
  const [{ port, certificate }] = (await once(child, 'message')) as [SecretUpstream]
  const caFile = join(dir, 'ca.pem')
  await writeFile(caFile, certificate)
  // The direct requests of the box go to a port of this machine.
  const config = loadConfig({
    ...RAISED_LIMITS,
    BOXWOOD_DATA: join(dir, 'data'),
    BOXWOOD_LISTEN: '127.0.0.1:0',
    BOXWOOD_LOG: 'warn',
    BOXWOOD_LOCAL_ISOLATION: 'process',
    BOXWOOD_LOCAL_NETWORK: 'host',
    BOXWOOD_SECRETS_PRIVATE: '127.0.0.0/8',
  })
  const coordinator = await startCoordinator(config, {
    secretBroker: { resolve: async () => ['127.0.0.1'], upstreamPort: port, upstreamCa: certificate },
  })
  cleanup.defer(() => coordinator.close())
  const key = (await readFile(join(dir, 'data/owner.key'), 'utf8')).trim()

  async function send(method: string, path: string, body?: object) {
    const response = await fetch(`${coordinator.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path} failed with status ${response.status}: ${text}`)
    return JSON.parse(text)
  }
  const listBoxes = async (): Promise<{ id: string; observedState: string }[]> =>
    (await send('GET', '/api/v1/boxes?live=1')).boxes

  const box = await waitUntil('the box is running', async () =>
    (await listBoxes()).find(({ observedState }) => observedState === 'running'),
  )
  cleanup.defer(async () => {
    await send('DELETE', `/api/v1/boxes/${box.id}`)
    await waitUntil('the box is deleted', async () => (await listBoxes()).length === 0)
  })
  const secret = { name: 'TOKEN', value: 'value-of-the-secret-0123456789', envName: 'TOKEN', hosts: [HOST] }
  await send('POST', `/api/v1/boxes/${box.id}/secrets`, secret)
  await waitUntil(
    'the box can use its secrets',
    async () => (await send('GET', `/api/v1/boxes/${box.id}/secrets`)).broker.state === 'ready',
  )
  const command = `exec '${process.execPath}' '${fileURLToPath(CLIENT)}' ${HOST} ${port} '${caFile}'`
  const { stdout, stderr } = await send('POST', `/v1/box/${box.id}/exec`, { command, timeoutSeconds: 300 })
  if (stdout === '') throw new Error(`The program on the box has failed: ${stderr}`)
  return JSON.parse(stdout)
}

function createRequestTable(title: string, { direct, brokered }: Measured['results'], kind: 'kept' | 'new') {
  const formatRow = (name: string, values: number[]) => [
    name,
    formatNumber(median(values)),
    formatNumber(quantile(values, 0.99)),
    formatNumber(median(values) / median(direct[kind])),
  ]
  return {
    title,
    columns: ['', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ direct'],
    rows: [formatRow('direct TLS', direct[kind]), formatRow('through the broker', brokered[kind])],
  }
}

export async function benchSecrets(): Promise<Table[]> {
  const { results, downloadBytes } = await measure()
  const toRate = (durations: number[]) => toMiB(downloadBytes) / (median(durations) / 1000)
  const [direct, brokered] = [toRate(results.direct.download), toRate(results.brokered.download)]
  return [
    createRequestTable('A request to the host of a secret, on a kept connection', results, 'kept'),
    createRequestTable('A request to the host of a secret, on a new connection', results, 'new'),
    {
      title: `A download of ${toMiB(downloadBytes)} MiB from the host of a secret`,
      columns: ['', 'MiB/s', 'direct ÷ this'],
      rows: [
        ['direct TLS', formatNumber(direct), '1'],
        ['through the broker', formatNumber(brokered), formatNumber(direct / brokered)],
      ],
    },
  ]
}

if (import.meta.main) for (const table of await benchSecrets()) console.log(formatMarkdown(table))
