// When frozen boxes must be stopped because memory is scarce.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createMemoryPressure, readMemoryState } from '../../../coordinator/base/memory-pressure.ts'
import { createTempDir } from '../../support/temp-dir.ts'

const GiB = 1024 ** 3

const isUnderPressure = (
  totalGiB: number,
  availableGiB: number,
  stalledPercent: number | null,
  limit?: number,
) =>
  createMemoryPressure({
    ...(limit !== undefined && { stalledPercent: limit }),
    read: async () => ({
      totalBytes: totalGiB * GiB,
      availableBytes: availableGiB * GiB,
      stalledPercent,
    }),
  }).isUnderMemoryPressure()

t.test('memory is scarce below 5 % and below 256 MiB of available memory', async (test) => {
  test.equal(await isUnderPressure(64, 3.1, null), true)
  test.equal(await isUnderPressure(64, 3.3, null), false)
  test.equal(await isUnderPressure(2, 0.24, null), true)
  test.equal(await isUnderPressure(2, 0.26, null), false)
  test.equal(await isUnderPressure(64, 3.1, 0), true, 'also when no process waits: swap may be missing')
})

t.test(
  'memory is scarce when processes wait for it, but not when a box has reached its own limit',
  async (test) => {
    test.equal(await isUnderPressure(16, 3.9, 10.5), true)
    test.equal(await isUnderPressure(16, 3.9, 9.5), false)
    test.equal(await isUnderPressure(16, 4.1, 80), false, 'the machine has enough memory')
    test.equal(await isUnderPressure(16, 3.9, 10.5, 20), false, 'the setting allows more')
  },
)

t.test('reads the memory of the machine, with and without pressure stall information', async (test) => {
  const dir = createTempDir(test, 'proc')
  writeFileSync(
    join(dir, 'meminfo'),
    'MemTotal:       24683612 kB\nMemFree: 1 kB\nMemAvailable:   24150544 kB\n',
  )
  const memory = { totalBytes: 24683612 * 1024, availableBytes: 24150544 * 1024 }
  test.same(await readMemoryState(dir), { ...memory, stalledPercent: null })
  mkdirSync(join(dir, 'pressure'))
  writeFileSync(
    join(dir, 'pressure', 'memory'),
    'some avg10=12.34 avg60=5.00 avg300=0.00 total=2468927\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=1\n',
  )
  test.same(await readMemoryState(dir), { ...memory, stalledPercent: 12.34 })
  const machine = await readMemoryState()
  test.ok(machine.availableBytes > 0 && machine.availableBytes <= machine.totalBytes)
})
