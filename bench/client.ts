// Compares the client with the same requests by hand, and with curl. `node bench/client.ts` runs only this benchmark.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { Boxwood as Client } from '../client/exports.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { runProgram } from './support/processes.ts'
import { formatNumber, measureDuration, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const EXECS = 500
const SIZE_MIB = 256
const ROUNDS = 5

export async function benchClient(boxwood: Boxwood): Promise<Table[]> {
  const { url, key } = boxwood
  const client = await new Client({ url, apiKey: key }).boxes.get(boxwood.box.hostname)
  const root = `${url}/v1/box/${client.id}`
  const authorization = `Bearer ${key}`

  /** The start, and the stream until its exit. */
  async function execByHand(): Promise<void> {
    const headers = { authorization, 'content-type': 'application/json' }
    const body = JSON.stringify({ command: 'true', detached: true })
    const started = await fetch(`${root}/exec`, { method: 'POST', headers, body })
    const { processId } = (await started.json()) as { processId: string }
    await (
      await fetch(`${root}/exec/${processId}/stream?encoding=base64`, { headers: { authorization } })
    ).text()
  }

  const times = { hand: [] as number[], client: [] as number[] }
  for (let round = 0; round < EXECS; round += 1) {
    times.hand.push(await measureDuration(execByHand))
    times.client.push(await measureDuration(() => client.exec('true')))
  }
  const execs = { hand: median(times.hand.slice(20)), client: median(times.client.slice(20)) }

  const dir = await mkdtemp(join(tmpdir(), 'boxwood-client-'))
  const source = join(dir, 'source')
  const transfers = { upload: [] as number[][], download: [] as number[][] }
  try {
    await runProgram('sh', ['-c', `head -c ${SIZE_MIB}M /dev/urandom > ${source}`])
    const curl = (...args: string[]) =>
      runProgram('curl', ['-sf', '-H', `Authorization: ${authorization}`, '-o', join(dir, 'target'), ...args])
    const bytes = new Uint8Array(SIZE_MIB * 1024 * 1024)
    const download = async () => {
      const reader = (await client.files.download('bench.bin')).getReader()
      while (!(await reader.read()).done);
    }
    for (let round = 0; round <= ROUNDS; round += 1) {
      const upload = [
        await measureDuration(() => curl('-T', source, `${root}/upload?path=bench.bin`)),
        await measureDuration(() => client.files.write('bench.bin', bytes)),
      ]
      const downloads = [
        await measureDuration(() => curl(`${root}/download?path=bench.bin`)),
        await measureDuration(download),
      ]
      // The first round loads the code.
      if (round === 0) continue
      transfers.upload.push(upload)
      transfers.download.push(downloads)
    }
    await client.files.remove('bench.bin')
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
  const formatTransfer = (name: string, rounds: number[][]) => {
    const [byCurl, byClient] = [0, 1].map((i) => median(rounds.map((round) => round[i] ?? 0)))
    const ratio = median(rounds.map(([a = 0, b = 1]) => a / b))
    return [name, formatNumber(byCurl ?? 0), formatNumber(byClient ?? 0), formatNumber(ratio)]
  }
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, '../client/exports.ts')],
    ...{
      bundle: true,
      minify: true,
      write: false,
      format: 'esm',
      platform: 'neutral',
      mainFields: ['module', 'main'],
    },
  })
  const size = gzipSync(outputFiles[0]?.contents ?? '').length / 1024
  return [
    {
      title: `The client, whose code has ${formatNumber(size)} KiB gzipped`,
      columns: ['', 'p50 (ms)', '÷ by hand'],
      rows: [
        ['start and stream of `true` by hand', formatNumber(execs.hand), '1'],
        ["`exec('true')` of the client", formatNumber(execs.client), formatNumber(execs.client / execs.hand)],
      ],
    },
    {
      title: `Transfers of ${SIZE_MIB} MiB with the client`,
      columns: ['', 'curl (ms)', 'client (ms)', 'throughput ÷ curl'],
      rows: [formatTransfer('upload', transfers.upload), formatTransfer('download', transfers.download)],
    },
  ]
}

if (import.meta.main) {
  const boxwood = await startBoxwood()
  try {
    for (const table of await benchClient(boxwood)) console.log(formatMarkdown(table))
  } finally {
    await boxwood.close()
  }
}
