// `sh -c true`: through Boxwood, over ssh, and as a bare spawn in Node.
import { spawn } from 'node:child_process'
import type { Boxwood } from './support/boxwood.ts'
import type { SshBench } from './support/ssh.ts'
import { quantile, round, timed } from './support/stats.ts'
import type { Table } from './support/table.ts'

const RUNS = { one: 400, eight: 100 }

const bareSpawn = () =>
  new Promise<void>((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] })
    child.stdout.resume()
    child.stderr.resume()
    child.once('error', reject)
    child.once('exit', () => resolve())
  })

type Contender = { name: string; once: () => Promise<void> }

/** p50 in ms one at a time and eight at once, and how the others relate to Boxwood. */
export async function benchExec(boxwood: Boxwood, ssh: SshBench | null): Promise<Table> {
  const contenders: Contender[] = [
    { name: 'Boxwood: client → coordinator → tunnel → agent', once: () => boxwood.exec('true') },
    { name: 'bare spawn in Node', once: bareSpawn },
  ]
  if (ssh)
    contenders.push(
      { name: 'ssh, warm connection', once: () => ssh.direct.exec('true') },
      { name: 'ssh, warm connection through a tuned ssh -R', once: () => ssh.reverse.exec('true') },
    )
  const rows: { name: string; one: number[]; eight: number[] }[] = contenders.map(({ name }) => ({
    name,
    one: [],
    eight: [],
  }))
  // In turns, so that what else the machine does meets all of them.
  for (let turn = 0; turn < 4; turn++)
    for (const [i, { once }] of contenders.entries()) {
      await timed(10, 1, once)
      rows[i]?.one.push(...(await timed(RUNS.one / 4, 1, once)))
      rows[i]?.eight.push(...(await timed(RUNS.eight / 4, 8, once)))
    }
  const p50 = (samples: number[]) => quantile(samples, 0.5)
  const [ours] = rows
  if (!ours) throw new Error('nothing was measured')
  return {
    title: 'Exec of `sh -c true`',
    columns: ['', 'p50 ms, one at a time', 'p99', 'p50 ms, 8 at once', '× Boxwood at 1', '× Boxwood at 8'],
    rows: rows.map(({ name, one, eight }) => [
      name,
      round(p50(one)),
      round(quantile(one, 0.99)),
      round(p50(eight)),
      round(p50(one) / p50(ours.one)),
      round(p50(eight) / p50(ours.eight)),
    ]),
  }
}
