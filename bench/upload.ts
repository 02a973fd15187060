// Compares uploads with one raw HTTP hop: throughput, and the CPU time of the receiving processes.
// `node bench/upload.ts` runs only this benchmark.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NODE_FLAGS } from '../coordinator/agents/bundles/node-flags.ts'
import { type Boxwood, startBoxwood } from './support/boxwood.ts'
import { getPid, readCpuSeconds, runProgram, terminate } from './support/processes.ts'
import { formatNumber, measureDuration, median } from './support/stats.ts'
import { formatMarkdown, type Table } from './support/table.ts'

const SIZE_MIB = 512
const ROUNDS = 7

type Candidate = {
  name: string
  url: string
  /** The process that writes the file, and the coordinator. */
  pids: number[]
  removeFile(): Promise<void>
  /** These lists have one value per round. */
  throughputs: number[]
  /** For each process. */
  cpuSecondsPerGiB: number[][]
}

export async function benchUpload(boxwood: Boxwood): Promise<Table> {
  await using cleanup = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-upload-'))
  cleanup.defer(() => rm(dir, { recursive: true, force: true }))
  const source = join(dir, 'source')
  await runProgram('sh', ['-c', `head -c ${SIZE_MIB}M /dev/urandom > ${source}`])

  const rawFile = join(dir, 'raw')
  const rawServer = fork(join(import.meta.dirname, 'support/receive-upload.ts'), [rawFile], {
    execArgv: [...NODE_FLAGS],
  })
  cleanup.defer(() => terminate(rawServer))
  const [rawUrl] = await once(rawServer, 'message')

  const raw: Candidate = {
    name: 'one raw HTTP hop',
    url: rawUrl,
    pids: [getPid(rawServer)],
    removeFile: () => rm(rawFile, { force: true }),
    throughputs: [],
    cpuSecondsPerGiB: [],
  }
  const uploaded: Candidate = {
    name: 'Boxwood: client → coordinator → agent',
    url: `${boxwood.url}/v1/box/${boxwood.box.hostname}/upload?path=bench.bin`,
    pids: [boxwood.agentPid, boxwood.coordinatorPid],
    removeFile: () => boxwood.exec('rm -f bench.bin'),
    throughputs: [],
    cpuSecondsPerGiB: [],
  }
  const candidates = [raw, uploaded]
  const authorization = `Authorization: Bearer ${boxwood.key}`
  for (let round = 0; round <= ROUNDS; round++) {
    for (const candidate of candidates) {
      const { url, pids } = candidate
      await candidate.removeFile()
      const before = await readCpu(pids)
      const ms = await measureDuration(() =>
        runProgram('curl', ['-sf', '-H', authorization, '-o', join(dir, 'answer'), '-T', source, url]),
      )
      const after = await readCpu(pids)
      // The first round loads the code and accesses the memory for the first time.
      if (round === 0) continue
      candidate.throughputs.push((SIZE_MIB * 1000) / ms)
      candidate.cpuSecondsPerGiB.push(
        after.map((seconds, i) => (seconds - (before[i] ?? 0)) / (SIZE_MIB / 1024)),
      )
    }
  }
  await uploaded.removeFile()

  /** Of each round, because the load of the machine differs between the rounds. */
  const ratios = uploaded.throughputs.map((value, round) => value / (raw.throughputs[round] ?? Number.NaN))
  const formatRow = ({ name, throughputs, pids, cpuSecondsPerGiB }: Candidate, ratio: number) => [
    name,
    formatNumber(median(throughputs)),
    formatNumber(ratio),
    ...[0, 1].map((i) =>
      i < pids.length ? formatNumber(median(cpuSecondsPerGiB.map((seconds) => seconds[i] ?? 0))) : '–',
    ),
  ]
  return {
    title: `Upload of ${SIZE_MIB} MiB`,
    columns: [
      '',
      'MiB/s',
      '÷ one raw hop',
      'CPU of the receiver or agent (s/GiB)',
      'CPU of the coordinator (s/GiB)',
    ],
    rows: [formatRow(raw, 1), formatRow(uploaded, median(ratios))],
  }
}

const readCpu = (pids: readonly number[]): Promise<number[]> => Promise.all(pids.map(readCpuSeconds))

if (import.meta.main) {
  const boxwood = await startBoxwood()
  try {
    console.log(formatMarkdown(await benchUpload(boxwood)))
  } finally {
    await boxwood.close()
  }
}
