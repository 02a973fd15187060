// Measures ten archives of a directory of 1 GB of which 1 % changes each time, and a restore, against cp and tar. Takes a few minutes.
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createArchives } from '../coordinator/providers/parts/archives/archives.ts'
import { findOnPath } from '../shared/command-name.ts'
import { createChangingTree } from './support/changing-tree.ts'
import { runProgram } from './support/processes.ts'
import { formatNumber, measureDuration, median, toMiB } from './support/stats.ts'
import type { Table } from './support/table.ts'

const RUNS = 10
/** The other candidates store the whole directory each time: more runs would show nothing else. */
const COMPARED_RUNS = 3

type Candidate = {
  name: string
  runs: number
  /** Returns the bytes that it stored. */
  capture(run: number): Promise<number>
  /** Restores the last capture into the empty directory. */
  restore(target: string): Promise<void>
}

/** Each candidate writes its data to disk before it ends. */
const runShell = (script: string, cwd: string) =>
  runProgram('sh', ['-c', `set -e\n${script}\nsync -f .`], { cwd })

const readUsage = (path: string): number =>
  Number.parseInt(execFileSync('du', ['-sk', path], { encoding: 'utf8' }), 10) * 1024

export async function benchSnapshots(): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), 'boxwood-snapshot-'))
  const source = join(dir, 'source')
  const home = join(source, 'home')
  const archives = createArchives({
    dir: join(dir, 'archives'),
    log: { warn: console.error },
    reserveBytes: 0,
  })
  const key = (run: number) => ({ workspaceId: 'ws_bench', archiveId: `snp_${run}` })
  const pausesMs: number[] = []
  const candidates: Candidate[] = [
    {
      name: 'Boxwood',
      runs: RUNS,
      async capture(run) {
        const files = { dir: source, roots: ['home'], uid: null }
        const info = await archives.capture(files, key(run), { pause: async () => () => {} })
        pausesMs.push(info.pausedMs ?? Number.NaN)
        return info.storedBytes
      },
      async restore(target) {
        await archives.restore(key(RUNS - 1), { dir: target, roots: [], uid: null })
        await runShell('', target)
      },
    },
    {
      name: '`cp -a --reflink=auto`',
      runs: COMPARED_RUNS,
      async capture() {
        rmSync(join(dir, 'copy'), { recursive: true, force: true })
        await runShell('cp -a --reflink=auto source/home copy', dir)
        return readUsage(join(dir, 'copy'))
      },
      restore: (target) => runShell('cp -a --reflink=auto ../copy home', target),
    },
    {
      name: '`tar \\| zstd -1`',
      runs: COMPARED_RUNS,
      async capture() {
        await runShell('tar -c -C source home | zstd -q -1 -T1 -f -o tar.zst', dir)
        return readUsage(join(dir, 'tar.zst'))
      },
      restore: (target) => runShell('zstd -q -dc ../tar.zst | tar -x', target),
    },
  ]
  const available = candidates.filter(
    ({ name }) => !name.includes('zstd') || findOnPath('zstd', process.env.PATH) !== null,
  )
  const results = available.map(() => ({
    captureMs: [] as number[],
    storedBytes: 0,
    restoreMs: Number.NaN,
  }))
  try {
    const tree = createChangingTree(home)
    for (let run = 0; run < RUNS; run++) {
      if (run > 0) tree.change()
      await runShell('', dir)
      for (const [index, { runs, capture }] of available.entries()) {
        const result = results[index]
        if (run >= runs) continue
        result?.captureMs.push(
          await measureDuration(async () => {
            result.storedBytes += await capture(run)
          }),
        )
      }
    }
    for (const [index, { restore }] of available.entries()) {
      const target = join(dir, 'target')
      mkdirSync(target)
      const result = results[index]
      if (result) result.restoreMs = await measureDuration(() => restore(target))
      await rm(target, { recursive: true })
      await runShell('', dir)
    }
  } finally {
    await archives.close()
    await rm(dir, { recursive: true, force: true })
  }
  const seconds = (ms: number) => formatNumber(ms / 1000)
  return [
    {
      title: 'Ten snapshots of 1 GB, of which 1 % changes each time',
      columns: [
        '',
        'first (s)',
        'later, median (s)',
        'paused: first, later (s)',
        'stored by ten (MiB)',
        'restore (s)',
      ],
      rows: available.map(({ name, runs }, index) => {
        const { captureMs = [], storedBytes = 0, restoreMs = Number.NaN } = results[index] ?? {}
        const [first = Number.NaN, ...later] = captureMs
        const paused = index === 0 ? pausesMs : captureMs
        const pauses = [paused[0] ?? Number.NaN, median(paused.slice(1))].map(seconds).join(', ')
        return [
          name,
          seconds(first),
          seconds(median(later)),
          pauses,
          formatNumber(toMiB((storedBytes * RUNS) / runs)),
          seconds(restoreMs),
        ]
      }),
    },
  ]
}
