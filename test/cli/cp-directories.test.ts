// box cp of directories: links, empty directories, modes and unusual names are kept; no partial results; untrusted
// archives.
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { truncateSync } from 'node:fs'
import {
  chmod,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { createUnpackScript } from '../../cli/copy/box-scripts.ts'
import type { Command } from '../../shared/api/commands.ts'
import { ApiError, edgeErrorBody } from '../../shared/errors.ts'
import { cutFromClient } from '../support/fault-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

// The tests compare modes, which depend on the umask.
process.umask(0o022)
const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const cp = (from: string, to: string) => runBox(coordinator, ['cp', from, to], { cwd: localDir })
const isTar = ({ command }: { command: string | null }) => command?.includes('\ntar -C ') ?? false
const SUCCESS = { code: 0, stdout: '', stderr: '' }

async function createTree(dir: string): Promise<void> {
  await mkdir(join(dir, 'empty'), { recursive: true })
  await mkdir(join(dir, 'sealed'))
  await writeFile(join(dir, 'sealed', 'inside'), 'x')
  await writeFile(join(dir, 'grün 🌳'), 'tree')
  await writeFile(join(dir, '@name'), 'at')
  await writeFile(join(dir, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
  await symlink('/etc/hostname', join(dir, 'absolute'))
  await symlink('grün 🌳', join(dir, 'relative'))
  await chmod(join(dir, 'sealed'), 0o555)
}

/** Relative path → mode and content, recursively. */
async function readTree(dir: string, prefix = ''): Promise<Record<string, string>> {
  const tree: Record<string, string> = {}
  for (const name of await readdir(dir)) {
    const path = join(dir, name)
    const stats = await lstat(path)
    if (stats.isSymbolicLink()) tree[prefix + name] = `-> ${await readlink(path)}`
    else if (stats.isDirectory()) {
      tree[`${prefix + name}/`] = (stats.mode & 0o777).toString(8)
      Object.assign(tree, await readTree(path, `${prefix + name}/`))
    } else tree[prefix + name] = `${(stats.mode & 0o777).toString(8)} ${await readFile(path, 'utf8')}`
  }
  return tree
}

// tap removes the directories after the test, and an ordinary user cannot delete the content of a read-only directory.
t.after(() => execFileSync('chmod', ['-R', 'u+w', localDir, homeDir]))
await createTree(join(localDir, 'tree'))
const expected = await readTree(join(localDir, 'tree'))
// Sparse: takes no space, and long enough to send that a signal arrives meanwhile.
await mkdir(join(localDir, 'large'))
await writeFile(join(localDir, 'large', 'file'), '')
await truncate(join(localDir, 'large', 'file'), 4 * 1024 ** 3)

t.test('uploads as a new directory, into an existing one, and only the contents', async (t) => {
  t.same(await cp('tree', 'fig:copy'), SUCCESS)
  t.same(await readTree(join(homeDir, 'copy')), expected)
  await mkdir(join(homeDir, 'work'))
  coordinator.giveFiles('fig')
  t.same(await cp('tree', 'fig:work'), SUCCESS)
  t.same(await readTree(join(homeDir, 'work', 'tree')), expected)
  await mkdir(join(homeDir, 'into'))
  await writeFile(join(homeDir, 'into', 'other'), 'other')
  coordinator.giveFiles('fig')
  t.same(await cp('tree/.', 'fig:into'), SUCCESS)
  t.same(await readTree(join(homeDir, 'into')), { ...expected, other: '644 other' })
  t.same((await readdir(homeDir)).sort(), ['copy', 'into', 'work'], 'no temporary file remains')
})

t.test('downloads as a new directory, and merges into an existing one', async (t) => {
  t.same(await cp('fig:copy', 'down'), SUCCESS)
  t.same(await readTree(join(localDir, 'down')), expected)
  await mkdir(join(localDir, 'inbox', 'copy', 'empty'), { recursive: true })
  await writeFile(join(localDir, 'inbox', 'copy', 'empty', 'other'), 'other')
  t.same(await cp('fig:copy', 'inbox'), SUCCESS)
  t.same(await readTree(join(localDir, 'inbox', 'copy')), { ...expected, 'empty/other': '644 other' })
  t.same((await readdir(localDir)).sort(), ['down', 'inbox', 'large', 'tree'])
})

t.test('downloads a directory that is too large for one download with tar', async (t) => {
  // Also a range is refused.
  for (let request = 0; request < 2; request++)
    coordinator.respondNext('GET /v1/box/fig/download', 413, edgeErrorBody(new ApiError('payload_too_large')))
  t.same(await cp('fig:copy', 'with-tar'), SUCCESS)
  t.match(await coordinator.waitForCommand('fig', isTar), { command: /^# box cp fig:copy with-tar\n/ })
  t.same(await readTree(join(localDir, 'with-tar')), expected)
})

t.test('copies an empty directory', async (t) => {
  t.same(await cp('tree/empty', 'fig:empty'), SUCCESS)
  t.same(await cp('fig:empty', 'empty'), SUCCESS)
  t.same(await readdir(join(localDir, 'empty')), [])
})

t.test('rejects a copy that would replace a file by a directory or the reverse', async (t) => {
  await writeFile(join(homeDir, 'file'), 'x')
  coordinator.giveFiles('fig')
  t.match(await cp('tree', 'fig:file'), {
    code: 1,
    stderr: 'box: fig: file exists and is not a directory.\n',
  })
  await mkdir(join(localDir, 'clash', 'copy', 'run.sh'), { recursive: true })
  t.match(await cp('fig:copy', 'clash'), { code: 1, stderr: /run\.sh.*Nothing was changed/ })
  t.same(await readdir(join(localDir, 'clash', 'copy')), ['run.sh'])
})

t.test('a failed upload leaves nothing on the box', async (t) => {
  const before = await readdir(homeDir)
  t.match(await cp('tree', 'fig:no/such/parent'), {
    code: 5,
    stderr: 'box: fig: the directory no/such does not exist. --mkpath creates it.\n',
  })
  await mkdir(join(localDir, 'shrinking'))
  await mkdir(join(homeDir, 'merged'))
  coordinator.giveFiles('fig')
  await writeFile(join(localDir, 'shrinking', 'large'), Buffer.alloc(8 * 1024 * 1024, 1))
  for (const destination of ['fig:broken', 'fig:merged']) {
    // The window of stdin is 1 MiB, so that the file shrinks before it is read to its end.
    coordinator.failNextUpgrade('GET /v1/box/fig/exec/', (_, open) => {
      truncateSync(join(localDir, 'shrinking', 'large'), 1024)
      open()
    })
    await writeFile(join(localDir, 'shrinking', 'large'), Buffer.alloc(8 * 1024 * 1024, 1))
    t.match(await cp('shrinking', destination), { code: 1, stderr: /large became shorter during the copy/ })
    await waitUntil('the box has removed the partial copy', async () =>
      (await readdir(homeDir)).every((name) => !name.startsWith('.box-cp')),
    )
  }
  t.same(await readdir(join(homeDir, 'merged')), [])
  t.same(await readdir(homeDir), [...before, 'merged'].sort())
})

for (const signal of ['SIGINT', 'SIGTERM'] as const)
  t.test(`${signal} during an upload removes the partial copy from the box`, async (t) => {
    const before = await readdir(homeDir)
    const upload = runBox(coordinator, ['cp', 'large', 'fig:interrupted'], {
      cwd: localDir,
      onSpawn: (child) =>
        void waitUntil(
          'the upload has started',
          async () => (await readdir(homeDir)).length > before.length,
        ).then(() => child.kill(signal)),
    })
    t.match(await upload, { code: signal === 'SIGINT' ? 130 : 143, stdout: '', stderr: '' })
    await waitUntil(
      'the box has removed the partial copy',
      async () => (await readdir(homeDir)).length === before.length,
    )
  })

t.test('SIGINT while the command is started terminates it', async (t) => {
  const before = await readdir(homeDir)
  let child: ChildProcess | undefined
  coordinator.failNext('POST /v1/box/fig/exec', async (response, _request, forward) => {
    await buffer(await forward())
    await waitUntil('the copy has begun', async () => (await readdir(homeDir)).length > before.length)
    child?.kill('SIGINT')
    response.on('error', () => undefined)
  })
  const upload = await runBox(coordinator, ['cp', 'large', 'fig:interrupted'], {
    cwd: localDir,
    onSpawn: (spawned) => {
      child = spawned
    },
  })
  t.match(upload, { code: 130, stdout: '', stderr: '' })
  await waitUntil(
    'the box has removed the partial copy',
    async () => (await readdir(homeDir)).length === before.length,
  )
})

t.test('a script that is terminated as soon as it has its directory removes it', async (t) => {
  const dir = t.testdir({
    bin: { mkdir: `#!/bin/sh\nPATH=\${PATH#*:} mkdir "$@" && kill -TERM $PPID` },
    target: {},
  })
  await chmod(join(dir, 'bin', 'mkdir'), 0o755)
  const script = createUnpackScript('# box cp', 'new', { name: 'large', mode: null, mtime: null }, false)
  const { status, stderr } = spawnSync('sh', ['-c', script], {
    cwd: join(dir, 'target'),
    env: { PATH: `${join(dir, 'bin')}:${process.env.PATH}` },
    encoding: 'utf8',
  })
  t.match({ status, stderr }, { status: 1, stderr: '' })
  t.same(await readdir(join(dir, 'target')), [])
})

t.test('a failed upload ends although the command on the box does not', async (t) => {
  await writeFile(join(localDir, 'shrinking', 'large'), Buffer.alloc(8 * 1024 * 1024, 1))
  coordinator.failNextUpgrade('GET /v1/box/fig/exec/', (_, open) => {
    truncateSync(join(localDir, 'shrinking', 'large'), 1024)
    open()
  })
  coordinator.failNext('DELETE /v1/box/fig/exec/', (response) => {
    response.writeHead(200).end('{}')
  })
  t.match(await cp('shrinking', 'fig:ignored'), { code: 1, stderr: /became shorter/ })
})

t.test('an upload continues after a lost connection', async (t) => {
  const content = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => (index * 7919) % 251))
  await mkdir(join(localDir, 'resumed'))
  await writeFile(join(localDir, 'resumed', 'data'), content)
  coordinator.failNextUpgrade('GET /v1/box/fig/exec/', cutFromClient(1_000_000))
  const first = coordinator.requests.length
  t.match(await cp('resumed', 'fig:'), { code: 0 })
  const connections = coordinator.requests.slice(first).filter(({ line }) => line.includes('/attach'))
  t.equal(connections.length, 2)
  t.ok((await readFile(join(homeDir, 'resumed', 'data'))).equals(content))
})

t.test('the history shows what was copied, and the script that ran', async (t) => {
  t.same(await cp('tree/empty', 'fig:shown'), SUCCESS)
  const isCopyTo = (path: string) => (record: Command) => record.command?.includes(path) ?? false
  const { command } = await coordinator.waitForCommand('fig', isCopyTo('fig:shown'))
  t.match(command, /^# box cp tree\/empty fig:shown\n/)
  t.match(command, /\ntar -x/)
  t.same(await cp('tree/empty', 'fig:a\nb'), SUCCESS)
  t.match(
    (await coordinator.waitForCommand('fig', isCopyTo('fig:a b'))).command,
    /^# box cp tree\/empty 'fig:a b'\ndst='\.\/a\nb'/,
    'a newline does not end the comment',
  )
})

t.test('a download that ends early leaves nothing on this machine', async (t) => {
  const tar = execFileSync('tar', ['-C', localDir, '-c', 'tree'])
  coordinator.failNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/tree' })
    response.write(tar.subarray(0, 2048), () => response.destroy())
  })
  const before = await readdir(localDir)
  t.match(await cp('fig:tree', 'broken'), { code: 3, stderr: /was interrupted/ })
  t.same(await readdir(localDir), before)
})

t.test('an archive with entries outside its directory writes nothing there', async (t) => {
  const attackDir = t.testdir({ 'outside.txt': 'mine', source: { top: { 'a.txt': 'evil' } } })
  const sourceDir = join(attackDir, 'source')
  const archives = {
    '..': ['top', '--transform=s,top/a.txt,top/../../outside.txt,', '-P'],
    absolute: ['top', `--transform=s,top/a.txt,${attackDir}/outside.txt,`, '-P'],
    link: ['top', 'link/a.txt', '--transform=s,^link/,top/link/,'],
  }
  await symlink(attackDir, join(sourceDir, 'top', 'link'))
  await mkdir(join(sourceDir, 'link'))
  await writeFile(join(sourceDir, 'link', 'a.txt'), 'evil')
  for (const [name, args] of Object.entries(archives)) {
    const tar = execFileSync('tar', ['-C', sourceDir, '-c', ...args])
    coordinator.failNext('GET /v1/box/fig/download', (response) => {
      response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/top' })
      response.end(tar)
    })
    const result = await cp('fig:top', join(attackDir, 'received'))
    t.match(result, { code: 1 }, name)
    t.same((await readdir(attackDir)).sort(), ['outside.txt', 'source'], name)
    t.equal(await readFile(join(attackDir, 'outside.txt'), 'utf8'), 'mine', name)
  }
})
