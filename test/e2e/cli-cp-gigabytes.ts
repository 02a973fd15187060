// box cp of more than 1 GiB with a real coordinator and a real box.
import { spawnSync } from 'node:child_process'
import { open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { type BoxOptions, runBox } from '../cli/run-box.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const GiB = 1024 ** 3
const { url, key, box: firstBox, exec } = sharedCoordinator
const name = firstBox.hostname
const localDir = createTempDir(t, 'cp')
const box = (args: string[], options: BoxOptions = {}) =>
  runBox(url, args, { cwd: localDir, env: { BOXWOOD_API_KEY: key }, ...options })
const cp = (...args: string[]) => box(['cp', ...args])
const SUCCESS = { code: 0, stdout: '', stderr: '' }
const onBox = async (command: string) => String((await exec(command)).stdout)

/** Much faster than hashes. */
const areEqual = (...paths: [string, string]) => spawnSync('cmp', paths, { cwd: localDir }).status === 0

t.test('downloads a file of more than 1 GiB, in ranges', async (t) => {
  const size = GiB + 1_000_003
  await exec(`write() { printf %s "$2" | dd of=large/data bs=1 seek=$1 conv=notrunc status=none; }
    mkdir large; truncate -s ${size} large/data; chmod 640 large/data
    write 0 start; write ${GiB - 4} boundary; write ${size - 3} end`)
  t.same(await cp(`${name}:large/data`, 'data-back'), SUCCESS)
  const file = await open(join(localDir, 'expected'), 'w')
  await file.truncate(size)
  await file.write('start', 0)
  // Across the boundary of the two ranges.
  await file.write('boundary', GiB - 4)
  await file.write('end', size - 3)
  await file.close()
  t.ok(areEqual('expected', 'data-back'))
  t.equal((await stat(join(localDir, 'data-back'))).mode & 0o777, 0o640 & ~process.umask())
})

// test/cli compares the content.
t.test('transfers of more than 1 GiB that are interrupted leave nothing', async (t) => {
  const interruptWhen = (description: string, hasStarted: () => Promise<boolean>): BoxOptions => ({
    onSpawn: (child) => void waitUntil(description, hasStarted).then(() => child.kill('SIGTERM')),
  })
  const listLocal = async () => (await readdir(localDir)).sort()
  const local = await listLocal()
  const download = interruptWhen('the download of the directory has started', async () =>
    (await listLocal()).some((entry) => !local.includes(entry)),
  )
  t.match(await box(['cp', `${name}:large`, 'large-back'], download), { code: 143 })
  t.same(await listLocal(), local)
  t.match((await box(['history', name])).stdout, new RegExp(`# box cp ${name}:large large-back …\n`))

  const listBox = () => onBox('ls -A')
  const remote = await listBox()
  const upload = interruptWhen('the upload has started', async () => (await listBox()).includes('.box-cp-'))
  t.match(await box(['cp', 'expected', `${name}:uploaded`], upload), { code: 143 })
  t.equal(await listBox(), remote)
  t.match((await box(['history', name])).stdout, new RegExp(`# box cp expected ${name}:uploaded …\n`))
  await exec('rm -r large')
})
