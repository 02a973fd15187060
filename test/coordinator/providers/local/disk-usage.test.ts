// Measuring the disk usage of a local box.
import { statfsSync } from 'node:fs'
import { createMachineSpec, startBox, testEachLevel, waitForFileText } from './support.ts'

const MiB = 1024 * 1024

testEachLevel(
  'measures the allocated bytes of a box, without holes, hard links and symlinks',
  async (test, level) => {
    const script = `head -c ${8 * MiB} /dev/zero >"$HOME/file"; ln "$HOME/file" "$HOME/second"; ln -s / "$HOME/link"
truncate -s 1G "$HOME/hole"
mkdir "$HOME/dir"; head -c ${4 * MiB} /dev/zero >"$HOME/dir/file"; echo yes >"$HOME/ready"`
    const { provider, spec, dataDir, inHome } = await startBox(test, { level, script })
    await waitForFileText(inHome('ready'))
    const { signal } = new AbortController()
    const bytes = (await provider.sharedDisk?.measure(spec.boxId, signal)) ?? 0
    test.ok(bytes >= 12 * MiB && bytes < 14 * MiB, `${bytes} bytes`)
    const space = await provider.sharedDisk?.readSpace()
    test.equal(space?.totalBytes, statfsSync(dataDir).blocks * statfsSync(dataDir).bsize)
    test.equal(await provider.sharedDisk?.measure(createMachineSpec().boxId, signal), 0)
  },
)
