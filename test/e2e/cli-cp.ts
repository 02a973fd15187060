// box cp with a real coordinator and real boxes: modes, read-only directories, two boxes, disconnects.
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { type BoxOptions, runBox } from '../cli/run-box.ts'
import { createTempDir } from '../support/temp-dir.ts'
import { waitUntil } from '../support/wait-until.ts'
import { sharedCoordinator } from './shared-coordinator.ts'

const { url, key, box: firstBox, exec, api, waitForState } = sharedCoordinator
const name = firstBox.hostname
const localDir = createTempDir(t, 'cp')
t.teardown(() => execFileSync('chmod', ['-R', 'u+rwx', localDir]))
const box = (args: string[], options: BoxOptions = {}) =>
  runBox(url, args, { cwd: localDir, env: { BOXWOOD_API_KEY: key }, ...options })
const cp = (...args: string[]) => box(['cp', ...args])
const SUCCESS = { code: 0, stdout: '', stderr: '' }
const onBox = async (command: string) => String((await exec(command)).stdout)

await mkdir(join(localDir, 'tree', 'sealed'), { recursive: true })
await writeFile(join(localDir, 'tree', 'sealed', 'inside'), 'x')
await writeFile(join(localDir, 'tree', 'run.sh'), '#!/bin/sh\n')
await chmod(join(localDir, 'tree', 'run.sh'), 0o4775)
await utimes(join(localDir, 'tree', 'run.sh'), 1_500_000_000, 1_500_000_000)
execFileSync('mkfifo', [join(localDir, 'tree', 'fifo')])
await chmod(join(localDir, 'tree', 'sealed'), 0o555)

t.test(
  'a directory with a read-only directory arrives with its modes, without temporary files',
  async (t) => {
    const skipped = { ...SUCCESS, stderr: 'box: tree/fifo: skipped, not a regular file.\n' }
    t.same(await cp('tree', `${name}:`), skipped)
    const list = "cd tree && stat -c '%a %n' sealed sealed/inside run.sh && stat -c %Y run.sh"
    const expected = '555 sealed\n644 sealed/inside\n775 run.sh\n1500000000\n'
    t.equal(await onBox(list), expected)
    await exec('mkdir into')
    t.same(await cp('tree/.', `${name}:into`), skipped, 'into an existing directory')
    t.equal(await onBox(list.replace('tree', 'into')), expected)
    t.equal(await onBox('find . -name ".box-cp*"'), '')
    t.same(await cp(`${name}:into/run.sh`, 'back.sh'), SUCCESS)
    const { mode, mtimeMs } = await stat(join(localDir, 'back.sh'))
    t.equal(mode & 0o7777, 0o775 & ~process.umask())
    t.equal(mtimeMs, 1_500_000_000_000)
  },
)

t.test('errors of the box do not show temporary names', async (t) => {
  await exec('mkdir ro && chmod 555 ro')
  for (const args of [
    ['tree/sealed', `${name}:ro`],
    ['tree/run.sh', `${name}:ro/`],
    ['tree/run.sh', 'tree/sealed', `${name}:ro`],
    // The directory sealed exists, and is read-only.
    ['tree/sealed', 'tree/run.sh', `${name}:into`],
  ]) {
    const { code, stderr } = await cp(...args)
    t.equal(code, 1, args.join(' '))
    t.match(stderr, /(ro|sealed).*permission denied/i)
    t.notMatch(stderr, /\.box-cp|boxwood-write/)
  }
  await exec('mkfifo pipe')
  t.match(await cp(`${name}:pipe`, '.'), { code: 1, stderr: /neither a file nor a directory/ })
})

t.test('writes stdin to a file that keeps its mode', async (t) => {
  await exec('echo old > app.sql; chmod 600 app.sql; ln -s app.sql link')
  t.same(await box(['cp', '-', `${name}:link`], { stdin: 'from stdin' }), SUCCESS)
  t.equal(await onBox('cat app.sql; stat -c " %a" app.sql; readlink link'), 'from stdin 600\napp.sql\n')
  t.match(await box(['cp', '-', `${name}:into`], { stdin: 'x' }), { code: 1, stderr: /into is a directory/ })
})

t.test('an interrupted upload leaves nothing on the box', async (t) => {
  const list = () => onBox('ls -A')
  const before = await list()
  const stdin = null
  const interrupted = box(['cp', '-', `${name}:partial`], {
    stdin,
    onSpawn: (child) => {
      child.stdin?.write('first part')
      void waitUntil('the upload has started', async () => (await list()).includes('.box-cp-')).then(() =>
        child.kill('SIGTERM'),
      )
    },
  })
  t.match(await interrupted, { code: 143 })
  // The box removes the temporary file when it learns of the lost connection.
  await waitUntil('nothing is left', async () => (await list()) === before)
})

t.test('copies between two boxes; the history shows what was typed', async (t) => {
  const created = await api('POST', '/boxes', { name: 'cherry' })
  await waitForState(created.json.box.id, 'running')
  await exec('mkdir -p src/empty; echo fig > src/file; chmod 750 src; ln -s file src/link')
  t.same(await cp(`${name}:src`, 'cherry:dst'), SUCCESS)
  const onOther = await box(['exec', 'cherry', '-n', '--', "stat -c '%a' dst; cat dst/link; ls -A . dst"])
  t.match(onOther.stdout, /^750\nfig\n\.:\n(\.profile\n)?dst\n\ndst:\nempty\nfile\nlink\n$/)
  t.same(await cp('cherry:', '.'), SUCCESS)
  t.equal(await readFile(join(localDir, 'cherry', 'dst', 'file'), 'utf8'), 'fig\n')
  t.ok((await readdir(localDir)).includes('cherry'))
  const history = await box(['history', 'cherry'])
  t.match(history.stdout, new RegExp(`# box cp ${name}:src cherry:dst …\n`))
  t.notMatch(history.stdout, /mkdir/)
  const json = await box(['history', 'cherry', '--json'])
  t.match(json.stdout, /mkdir.*tar -x/, 'the script is not hidden')
})
