// 1 GiB up and down against scp through a reverse tunnel, what it does to memory, and to an exec meanwhile.
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
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
  }, 25)
  await work.finally(() => clearInterval(timer))
  return mib(most - before)
}

export async function benchTransfer(boxwood: Boxwood, ssh: SshBench | null): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-transfer-'))
  const source = join(dir, 'source')
  const target = join(dir, 'target')
  const path = `/v1/box/${boxwood.box.hostname}`
  await run('sh', ['-c', `head -c ${SIZE_MIB}M /dev/urandom > ${source}`])

  const up = async () => {
    const response = await boxwood.send(
      'PUT',
      `${path}/upload?path=bench.bin`,
      createReadStream(source, { highWaterMark: 1 << 20 }),
      { 'content-length': SIZE_MIB * 1024 ** 2 },
    )
    response.resume()
    await new Promise((resolve) => response.once('end', resolve))
  }
  const down = async () =>
    pipeline(await boxwood.send('GET', `${path}/download?path=bench.bin`), createWriteStream(target))

  const rates: Record<string, number[]> = {}
  const rate = async (name: string, work: () => Promise<unknown>) => {
    const list = rates[name] ?? []
    rates[name] = list
    list.push((SIZE_MIB * 1000) / (await duration(work)))
  }
  let grown = { coordinator: 0, agent: 0 }
  for (let turn = 0; turn < TURNS; turn++) {
    const both = (async () => {
      await rate('up', up)
      await rate('down', down)
    })()
    const [coordinator, agent] = await Promise.all([
      growth(boxwood.coordinatorPid, both),
      growth(boxwood.agentPid, both),
    ])
    grown = {
      coordinator: Math.max(grown.coordinator, coordinator),
      agent: Math.max(grown.agent, agent),
    }
    if (ssh) {
      await rate('scp up', () => ssh.reverse.copyTo(source, join(dir, 'far')))
      await rate('scp down', () => ssh.reverse.copyFrom(join(dir, 'far'), target))
    }
  }

  const idle = median(await timed(200, 1, () => boxwood.exec('true')))
  let downloading = true
  const busy: number[] = []
  const sampling = (async () => {
    while (downloading) busy.push(...(await timed(1, 1, () => boxwood.exec('true'))))
  })()
  for (let turn = 0; turn < TURNS; turn++)
    await pipeline(
      await boxwood.send('GET', `${path}/download?path=bench.bin`),
      createWriteStream('/dev/null'),
    )
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
