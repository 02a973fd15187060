// Measures requests about a box at the coordinator with its tunnel, and at another one that forwards them.
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { startPostgres } from '../test/support/postgres.ts'
import { spawnCoordinator, startBoxwood } from './support/boxwood.ts'
import { formatNumber, measureDuration, measureRuns, median, quantile, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const ROUNDS = 7
const REQUESTS = 200
const WARM_UP = 50
const CONCURRENCIES = [1, 8]
const DOWNLOADS = 3
const DOWNLOAD_BYTES = 256 * 1024 ** 2

type Candidate = { name: string; send(method: string, path: string, body?: object): Promise<number> }

function createCandidate(name: string, url: string, key: string): Candidate {
  const agent = new Agent({ keepAlive: true, maxSockets: 100 })
  return {
    name,
    send: (method, path, body) =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
        const request = httpRequest(url + path, { method, agent, headers })
        request.once('error', reject)
        request.once('response', (response: IncomingMessage) => {
          let bytes = 0
          response.on('data', (chunk: Buffer) => {
            bytes += chunk.length
          })
          response.once('error', reject)
          response.once('end', () =>
            response.statusCode === 200
              ? resolve(bytes)
              : reject(new Error(`${method} ${path}: ${response.statusCode}`)),
          )
        })
        request.end(body && JSON.stringify(body))
      }),
  }
}

/** The first coordinator has the URL of its agents before it listens. */
async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function compareRequests(
  candidates: readonly Candidate[],
  concurrency: number,
  run: (candidate: Candidate) => Promise<number>,
): Promise<Table> {
  const results = candidates.map((candidate) => ({ candidate, ms: [] as number[] }))
  // The candidates take turns, so that other load on the machine affects all of them.
  for (let round = 0; round < ROUNDS; round++)
    for (const { candidate, ms } of results) {
      const send = async () => void (await run(candidate))
      await measureRuns(WARM_UP, 1, send)
      ms.push(...(await measureRuns(REQUESTS / concurrency, concurrency, send)))
    }
  const base = median(results[0]?.ms ?? [])
  return {
    title: `Exec of \`true\` through one of two coordinators, ${concurrency} at once`,
    columns: ['the coordinator', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ with the tunnel'],
    rows: results.map(({ candidate: { name }, ms }) => [
      name,
      formatNumber(median(ms)),
      formatNumber(quantile(ms, 0.99)),
      formatNumber(median(ms) / base),
    ]),
  }
}

async function compareDownloads(candidates: readonly Candidate[], path: string): Promise<Table> {
  const results = candidates.map((candidate) => ({ candidate, rates: [] as number[] }))
  for (let round = 0; round < DOWNLOADS; round++)
    for (const { candidate, rates } of results) {
      const ms = await measureDuration(() => candidate.send('GET', path))
      rates.push((toMiB(DOWNLOAD_BYTES) * 1000) / ms)
    }
  const base = median(results[0]?.rates ?? [])
  return {
    title: 'A download of 256 MiB through one of two coordinators',
    columns: ['the coordinator', 'MiB/s', '÷ with the tunnel'],
    rows: results.map(({ candidate: { name }, rates }) => [
      name,
      formatNumber(median(rates)),
      formatNumber(median(rates) / base),
    ]),
  }
}

export async function benchReplicas(): Promise<Table[]> {
  await using cleanup = new AsyncDisposableStack()
  const postgres = await startPostgres()
  if ('skipReason' in postgres) throw new Error(postgres.skipReason)
  cleanup.defer(() => postgres.stop())
  const url = `http://127.0.0.1:${await findFreePort()}`
  const env = {
    BOXWOOD_DATABASE_URL: await postgres.newDatabase(),
    BOXWOOD_REPLICA_URL: 'http://127.0.0.1:0',
    BOXWOOD_PUBLIC_URL: url,
    BOXWOOD_AGENT_URL: url,
    BOXWOOD_WARM: '0',
  }
  const first = await startBoxwood({ ...env, BOXWOOD_LISTEN: new URL(url).host })
  cleanup.defer(() => first.close())
  const keys = join(first.dataDir, 'master-keys')
  const { url: otherUrl } = await spawnCoordinator({ ...env, BOXWOOD_MASTER_KEYS: keys }, cleanup)
  const candidates = [
    createCandidate('with the tunnel', first.url, first.key),
    createCandidate('forwards', otherUrl, first.key),
  ]
  const edge = `/v1/box/${first.box.id}`
  const tables = []
  for (const concurrency of CONCURRENCIES)
    tables.push(
      await compareRequests(candidates, concurrency, (candidate) =>
        candidate.send('POST', `${edge}/exec`, { command: 'true' }),
      ),
    )
  const [direct] = candidates
  await direct?.send('POST', `${edge}/exec`, { command: `head -c ${DOWNLOAD_BYTES} /dev/urandom > large` })
  tables.push(await compareDownloads(candidates, `${edge}/download?path=large`))
  return tables
}

if (import.meta.main) for (const table of await benchReplicas()) console.log(formatMarkdown(table))
