// Measures 1 GiB uploads and downloads against scp through a reverse tunnel, the memory growth during the transfers, and
// the latency of exec during a download.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Boxwood } from './support/boxwood.ts'
import { readResidentBytes, runProgram } from './support/processes.ts'
import type { SshBaseline } from './support/ssh.ts'
import { formatNumber, measureDuration, measureRuns, median, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const SIZE_MIB = 1024
const RUNS = 3
const MEMORY_SAMPLE_INTERVAL_MS = 50
const IDLE_EXEC_RUNS = 200

/** Samples the resident memory of a process while `work` runs. Returns the maximum growth in MiB. */
async function measureMemoryGrowth(pid: number, work: Promise<unknown>): Promise<number> {
  const before = await readResidentBytes(pid)
  let max = before
  const timer = setInterval(async () => {
    max = Math.max(max, await readResidentBytes(pid).catch(() => 0))
  }, MEMORY_SAMPLE_INTERVAL_MS)
  await work.finally(() => clearInterval(timer))
  return toMiB(max - before)
}

export async function benchTransfer(boxwood: Boxwood, ssh: SshBaseline | null): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-transfer-'))
  const source = join(dir, 'source')
  const downloadTarget = join(dir, 'download')
  const scpUploadTarget = join(dir, 'scp-upload')
  const filler = join(dir, 'filler')
  const route = `${boxwood.url}/v1/box/${boxwood.box.hostname}`
  await runProgram('sh', ['-c', `head -c ${SIZE_MIB}M /dev/urandom > ${source}`])
  const curlOptions = ['-sf', '-H', `Authorization: Bearer ${boxwood.key}`]
  const upload = () =>
    runProgram('curl', [...curlOptions, '-o', '/dev/null', '-T', source, `${route}/upload?path=bench.bin`])
  const downloadTo = (path: string) =>
    runProgram('curl', [...curlOptions, '-o', path, `${route}/download?path=bench.bin`])

  /** Called before each transfer. Removes the target of the previous transfer, so that no transfer overwrites a file. */
  const prepareTransfer = async (removeTarget: () => Promise<void>) => {
    await removeTarget()
    // A hypervisor may back guest memory only on first access, at a tenth of the speed, and reclaim it when idle.
    // Writing a larger file first makes the memory available.
    await runProgram('sh', ['-c', `head -c ${1.5 * SIZE_MIB}M /dev/zero > ${filler}; rm ${filler}`])
  }
  const removeUpload = () => boxwood.exec('rm -f bench.bin')
  const removeDownload = () => rm(downloadTarget, { force: true })
  const removeScpUpload = () => rm(scpUploadTarget, { force: true })

  /** MiB/s of each run. */
  const throughputs: Record<string, number[]> = {}
  const measureThroughput = async (name: string, transfer: () => Promise<unknown>) => {
    const samples = throughputs[name] ?? []
    throughputs[name] = samples
    samples.push((SIZE_MIB * 1000) / (await measureDuration(transfer)))
  }
  /** The maximum over all runs, in MiB. */
  const memoryGrowth = { coordinator: 0, agent: 0 }
  const recordMemoryGrowth = async (work: () => Promise<unknown>) => {
    const running = work()
    const [coordinator, agent] = await Promise.all([
      measureMemoryGrowth(boxwood.coordinatorPid, running),
      measureMemoryGrowth(boxwood.agentPid, running),
    ])
    memoryGrowth.coordinator = Math.max(memoryGrowth.coordinator, coordinator)
    memoryGrowth.agent = Math.max(memoryGrowth.agent, agent)
  }
  for (let i = 0; i < RUNS; i++) {
    await prepareTransfer(removeUpload)
    await recordMemoryGrowth(() => measureThroughput('upload', upload))
    await prepareTransfer(removeDownload)
    await recordMemoryGrowth(() => measureThroughput('download', () => downloadTo(downloadTarget)))
    if (!ssh) continue
    await prepareTransfer(removeScpUpload)
    await measureThroughput('scp upload', () => ssh.reverse.copyTo(source, scpUploadTarget))
    await prepareTransfer(removeDownload)
    await measureThroughput('scp download', () => ssh.reverse.copyFrom(scpUploadTarget, downloadTarget))
  }

  const idleMs = median(await measureRuns(IDLE_EXEC_RUNS, 1, () => boxwood.exec('true')))
  let isDownloading = true
  const samplesMs: number[] = []
  const sampling = (async () => {
    while (isDownloading) samplesMs.push(...(await measureRuns(1, 1, () => boxwood.exec('true'))))
  })()
  for (let i = 0; i < RUNS; i++) await downloadTo('/dev/null')
  isDownloading = false
  await sampling
  const duringDownloadMs = median(samplesMs)
  await rm(dir, { recursive: true, force: true })

  const medianThroughput = (name: string) => median(throughputs[name] ?? [])
  const formatRow = (direction: string) => {
    const boxwoodMiB = medianThroughput(direction)
    const scpMiB = medianThroughput(`scp ${direction}`)
    return [
      direction,
      formatNumber(boxwoodMiB),
      ssh ? formatNumber(scpMiB) : '–',
      ssh ? formatNumber(boxwoodMiB / scpMiB) : '–',
    ]
  }
  return [
    {
      title: 'Transfer of a 1 GiB file of random bytes (MiB/s)',
      columns: ['', 'Boxwood', 'scp through a tuned `ssh -R`', 'Boxwood ÷ scp'],
      rows: [formatRow('upload'), formatRow('download')],
    },
    {
      title: 'Exec of `true` during a download at full speed',
      columns: ['p50 (ms), idle', 'p50 (ms), during the download', 'download ÷ idle'],
      rows: [[formatNumber(idleMs), formatNumber(duringDownloadMs), formatNumber(duringDownloadMs / idleMs)]],
    },
    {
      title: 'Growth of resident memory during the 1 GiB transfers (MiB)',
      columns: ['coordinator', 'agent'],
      rows: [[formatNumber(memoryGrowth.coordinator), formatNumber(memoryGrowth.agent)]],
    },
  ]
}
