// 1 GiB up and down against scp through a reverse tunnel, what it does to memory, and to an exec meanwhile.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Boxwood } from './support/boxwood.ts'
import { residentBytes, run } from './support/processes.ts'
import type { SshBench } from './support/ssh.ts'
import { duration, median, mib, round, timed } from './support/stats.ts'
import type { Table } from './support/table.ts'

const SIZE_MIB = 1024
const TURNS = 3

/** Samples resident memory while `work` runs; gives the most it grew by, in MiB. */
async function growth(pid: number, work: Promise<unknown>): Promise<number> {
  const before = await residentBytes(pid)
  let most = before
  const timer = setInterval(async () => {
    most = Math.max(most, await residentBytes(pid).catch(() => 0))
  }, 50)
  await work.finally(() => clearInterval(timer))
  return mib(most - before)
}

export async function benchTransfer(boxwood: Boxwood, ssh: SshBench | null): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-transfer-'))
  const source = join(dir, 'source')
  const target = join(dir, 'target')
  const far = join(dir, 'far')
  const ballast = join(dir, 'ballast')
  const route = `${boxwood.url}/v1/box/${boxwood.box.hostname}`
  await run('sh', ['-c', `head -c ${SIZE_MIB}M /dev/urandom > ${source}`])
  const curl = ['-sf', '-H', `Authorization: Bearer ${boxwood.key}`]
  const up = () => run('curl', [...curl, '-o', '/dev/null', '-T', source, `${route}/upload?path=bench.bin`])
  const down = () => run('curl', [...curl, '-o', target, `${route}/download?path=bench.bin`])

  /**
   * Before each transfer: nothing of an earlier one to write over, and memory that was in use a moment ago. A virtual
   * machine may get its memory only as it is touched, at a tenth of the speed, and give it back when it is idle.
   */
  const afresh = async (old: string | null) => {
    if (old === null) await boxwood.exec('rm -f bench.bin')
    else await rm(old, { force: true })
    await run('sh', ['-c', `head -c ${1.5 * SIZE_MIB}M /dev/zero > ${ballast}; rm ${ballast}`])
  }

  const rates: Record<string, number[]> = {}
  const rate = async (name: string, work: () => Promise<unknown>) => {
    const list = rates[name] ?? []
    rates[name] = list
    list.push((SIZE_MIB * 1000) / (await duration(work)))
  }
  const grown = { coordinator: 0, agent: 0 }
  const watched = async (work: () => Promise<unknown>) => {
    const running = work()
    const [coordinator, agent] = await Promise.all([
      growth(boxwood.coordinatorPid, running),
      growth(boxwood.agentPid, running),
    ])
    grown.coordinator = Math.max(grown.coordinator, coordinator)
    grown.agent = Math.max(grown.agent, agent)
  }
  for (let turn = 0; turn < TURNS; turn++) {
    await afresh(null)
    await watched(() => rate('up', up))
    await afresh(target)
    await watched(() => rate('down', down))
    if (!ssh) continue
    await afresh(far)
    await rate('scp up', () => ssh.reverse.copyTo(source, far))
    await afresh(target)
    await rate('scp down', () => ssh.reverse.copyFrom(far, target))
  }

  const idle = median(await timed(200, 1, () => boxwood.exec('true')))
  let downloading = true
  const busy: number[] = []
  const sampling = (async () => {
    while (downloading) busy.push(...(await timed(1, 1, () => boxwood.exec('true'))))
  })()
  for (let turn = 0; turn < TURNS; turn++)
    await run('curl', [...curl, '-o', '/dev/null', `${route}/download?path=bench.bin`])
  downloading = false
  await sampling
  await rm(dir, { recursive: true, force: true })

  const m = (name: string) => median(rates[name] ?? [])
  const row = (name: string, direction: string) => [
    name,
    round(m(direction)),
    ssh ? round(m(`scp ${direction}`)) : '–',
    ssh ? round(m(direction) / m(`scp ${direction}`)) : '–',
  ]
  return [
    {
      title: 'A file of 1 GiB of random bytes, MiB/s',
      columns: ['', 'Boxwood', 'scp through a tuned ssh -R', 'Boxwood ÷ scp'],
      rows: [row('up', 'up'), row('down', 'down')],
    },
    {
      title: 'Exec while a download runs at full speed',
      columns: ['p50 ms, idle', 'p50 ms, during the download', '× idle'],
      rows: [[round(idle), round(median(busy)), round(median(busy) / idle)]],
    },
    {
      title: 'Growth of resident memory while 1 GiB goes up and down, MiB',
      columns: ['coordinator', 'agent'],
      rows: [[round(grown.coordinator), round(grown.agent)]],
    },
  ]
}
