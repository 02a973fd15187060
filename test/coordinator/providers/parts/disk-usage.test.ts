// Measuring the disk usage of a local box.
import { execFileSync } from 'node:child_process'
import { statfsSync } from 'node:fs'
import t from 'tap'
import { measureTree } from '../../../../coordinator/providers/parts/disk-usage.ts'
import { testEachLevel } from '../local/each-level.ts'
import { createMachineSpec, startBox, waitForFileText } from '../local/support.ts'

const MiB = 1024 * 1024

function countInodes(cwd: string): number {
  return Number(execFileSync('sh', ['-c', 'find . -exec stat -c %i {} + | sort -u | wc -l'], { cwd }))
}

testEachLevel(
  'measures the allocated bytes and the inodes of a box, without holes, hard links and symlinks',
  async (test, level) => {
    const script = `head -c ${8 * MiB} /dev/zero >"$HOME/file"; ln "$HOME/file" "$HOME/second"; ln -s / "$HOME/link"
truncate -s 1G "$HOME/hole"
mkdir "$HOME/dir"; head -c ${4 * MiB} /dev/zero >"$HOME/dir/file"; echo yes >"$HOME/ready"`
    const { provider, spec, dataDir, paths, inHome } = await startBox(test, { level, script })
    await waitForFileText(inHome('ready'))
    const { signal } = new AbortController()
    const { bytes = 0, inodes = 0 } = (await provider.sharedDisk?.measure(spec.boxId, signal)) ?? {}
    test.ok(bytes >= 12 * MiB && bytes < 14 * MiB, `${bytes} bytes`)
    test.equal(inodes, countInodes(paths.dir), 'the hard link is not counted')
    const space = await provider.sharedDisk?.readSpace()
    const { blocks, bsize, files } = statfsSync(dataDir)
    test.equal(space?.bytes.total, blocks * bsize)
    test.equal(space?.inodes?.total ?? 0, files)
    const absent = await provider.sharedDisk?.measure(createMachineSpec().boxId, signal)
    test.same(absent, { bytes: 0, inodes: 0 })
  },
)

t.test('a measurement that takes too long gives no size', async (t) => {
  const { signal } = new AbortController()
  await t.rejects(measureTree('/usr', signal, 1), {
    name: 'MeasurementTimeoutError',
    message: /could not be counted within 0\.001 s/,
  })
})
