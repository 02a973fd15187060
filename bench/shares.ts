// Measures a request and a download of 1 GiB through a shared port, against two relays that only copy bytes.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { fileURLToPath } from 'node:url'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { terminate } from './support/processes.ts'
import { formatNumber, measureDuration, measureRuns, median, quantile, toMiB } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const RELAY = new URL('support/relay.ts', import.meta.url)
const APP = new URL('support/shared-app.mjs', import.meta.url)
const ROUNDS = 5
const REQUESTS = 400
const CONCURRENCIES = [1, 8]
const DOWNLOADS = 3
const DOWNLOAD_BYTES = 1024 ** 3
/** The length of the body of a small response. */
const SMALL_BYTES = 1024

type Route = { name: string; host: string; port: number; hostHeader: string; agent: Agent }

/** Sends a request on a kept connection, and reads the whole response. Resolves to the number of bytes of the body. */
export async function get({ name, host, port, hostHeader, agent }: Route, path: string): Promise<number> {
  const request = httpRequest({ host, port, path, agent, headers: { host: hostHeader } })
  request.end()
  const [response] = (await once(request, 'response').catch((cause: unknown) => {
    throw new Error(`GET ${path} through ${name} failed`, { cause })
  })) as [IncomingMessage]
  let bytes = 0
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  await once(response, 'end')
  if (response.statusCode !== 200) throw new Error(`GET ${path} failed with status ${response.statusCode}`)
  return bytes
}

async function startRelay(targetPort: number): Promise<{ child: ChildProcess; port: number }> {
  const child = fork(fileURLToPath(RELAY), [String(targetPort)])
  const [port] = (await once(child, 'message')) as [number]
  return { child, port }
}

/** Starts the app on the box. Resolves to its port. */
async function startApp(boxwood: Boxwood): Promise<number> {
  const edge = `/v1/box/${boxwood.box.hostname}`
  const command = `exec '${process.execPath}' '${fileURLToPath(APP)}'`
  const { processId } = await boxwood.sendJson('POST', `${edge}/exec`, { command, detached: true })
  for (;;) {
    const { stdout, running } = await boxwood.sendJson('GET', `${edge}/exec/${processId}`)
    if (stdout.endsWith('\n')) return Number(stdout)
    if (!running) throw new Error('The app on the box has exited.')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

const formatRow = (name: string, values: readonly number[], base: readonly number[]) => [
  name,
  formatNumber(median(values)),
  formatNumber(quantile(values, 0.99)),
  formatNumber(median(values) / median(base)),
]

async function measureRequests(routes: readonly Route[], concurrency: number): Promise<Table> {
  const samples = routes.map(() => [] as number[])
  for (let round = 0; round <= ROUNDS; round++)
    for (const [index, route] of routes.entries()) {
      const run = async () => void (await get(route, `/bytes/${SMALL_BYTES}`))
      const durations = await measureRuns(REQUESTS / concurrency, concurrency, run)
      // The first round is for warm-up.
      if (round > 0) samples[index]?.push(...durations)
    }
  const [base = []] = samples
  return {
    title: `A request through a shared port, ${concurrency} at a time`,
    columns: ['', 'p50 (ms)', 'p99 (ms)', 'p50 ÷ relays'],
    rows: routes.map(({ name }, index) => formatRow(name, samples[index] ?? [], base)),
  }
}

async function measureDownloads(routes: readonly Route[]): Promise<Table> {
  const rates = routes.map(() => [] as number[])
  for (let round = 0; round < DOWNLOADS; round++)
    for (const [index, route] of routes.entries()) {
      const ms = await measureDuration(async () => {
        const bytes = await get(route, `/bytes/${DOWNLOAD_BYTES}`)
        if (bytes !== DOWNLOAD_BYTES) throw new Error(`the download ended after ${bytes} bytes`)
      })
      rates[index]?.push(toMiB(DOWNLOAD_BYTES) / (ms / 1000))
    }
  const base = median(rates[0] ?? [])
  return {
    title: 'A download of 1 GiB through a shared port',
    columns: ['', 'MiB/s', 'relays ÷ this'],
    rows: routes.map(({ name }, index) => {
      const rate = median(rates[index] ?? [])
      return [name, formatNumber(rate), formatNumber(base / rate)]
    }),
  }
}

/** Two relays in a row, and a public link, to the same app. */
export async function startRoutes(): Promise<{
  routes: [relays: Route, link: Route]
  close(): Promise<void>
}> {
  await using cleanup = new AsyncDisposableStack()
  // The relays connect to the app, so the box has the network of this machine.
  const boxwood = await startBoxwood({ BOXWOOD_LOCAL_ISOLATION: 'process', BOXWOOD_LOCAL_NETWORK: 'host' })
  cleanup.defer(boxwood.close)
  const startRelayTo = async (targetPort: number) => {
    const { child, port } = await startRelay(targetPort)
    cleanup.defer(() => terminate(child))
    return port
  }
  const appPort = await startApp(boxwood)
  const relayPort = await startRelayTo(await startRelayTo(appPort))
  const { share } = await boxwood.sendJson('POST', `/api/v1/boxes/${boxwood.box.id}/port-shares`, {
    port: appPort,
    access: 'public',
  })
  const agent = new Agent({ keepAlive: true })
  cleanup.defer(() => agent.destroy())
  const local = { host: '127.0.0.1', agent }
  const cleanupOnClose = cleanup.move()
  return {
    routes: [
      { ...local, name: 'two relays', port: relayPort, hostHeader: 'localhost' },
      {
        ...local,
        name: 'a public link',
        port: Number(new URL(boxwood.url).port),
        hostHeader: new URL(share.url).host,
      },
    ],
    close: () => cleanupOnClose.disposeAsync(),
  }
}

export async function benchShares(): Promise<Table[]> {
  const { routes, close } = await startRoutes()
  try {
    const tables: Table[] = []
    for (const concurrency of CONCURRENCIES) tables.push(await measureRequests(routes, concurrency))
    return [...tables, await measureDownloads(routes)]
  } finally {
    await close()
  }
}

if (import.meta.main) for (const table of await benchShares()) console.log(formatMarkdown(table))
