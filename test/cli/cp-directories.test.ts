// box cp of directories: links, empty directories, modes and unusual names are kept; no partial results; untrusted
// archives.
import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

// The tests compare modes, which depend on the umask.
process.umask(0o022)
const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const homeDir = fake.getHome('fig')
const localDir = t.testdir({})
const cp = (from: string, to: string) => runBox(fake.url, ['cp', from, to], { cwd: localDir })
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

t.test('uploads as a new directory, into an existing one, and only the contents', async (t) => {
  t.same(await cp('tree', 'fig:copy'), SUCCESS)
  t.same(await readTree(join(homeDir, 'copy')), expected)
  await mkdir(join(homeDir, 'work'))
  t.same(await cp('tree', 'fig:work'), SUCCESS)
  t.same(await readTree(join(homeDir, 'work', 'tree')), expected)
  await mkdir(join(homeDir, 'into'))
  await writeFile(join(homeDir, 'into', 'other'), 'other')
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
  t.same((await readdir(localDir)).sort(), ['down', 'inbox', 'tree'])
})

t.test('copies an empty directory', async (t) => {
  t.same(await cp('tree/empty', 'fig:empty'), SUCCESS)
  t.same(await cp('fig:empty', 'empty'), SUCCESS)
  t.same(await readdir(join(localDir, 'empty')), [])
})

t.test('rejects a copy that would replace a file by a directory or the reverse', async (t) => {
  await writeFile(join(homeDir, 'file'), 'x')
  t.match(await cp('tree', 'fig:file'), {
    code: 1,
    stderr: 'box: Cannot copy the directory to fig: file exists and is not a directory.\n',
  })
  await mkdir(join(localDir, 'clash', 'copy', 'run.sh'), { recursive: true })
  t.match(await cp('fig:copy', 'clash'), { code: 1, stderr: /run\.sh.*Nothing was changed/ })
  t.same(await readdir(join(localDir, 'clash', 'copy')), ['run.sh'])
})

t.test('a failed upload removes its archive from the box', async (t) => {
  const before = await readdir(homeDir)
  t.match(await cp('tree', 'fig:no/such/parent'), {
    code: 1,
    stderr:
      'box: Cannot copy the directory to fig: no/such is not a directory. If it does not exist, create it with mkdir -p.\n',
  })
  fake.handleNext('PUT /v1/box/fig/upload', (response, request) => {
    request.resume()
    request.once('end', () => response.destroy())
  })
  t.match(await cp('tree', 'fig:broken'), { code: 3 })
  t.same(await readdir(homeDir), before)
  const lastRequest = fake.requests.at(-1)?.line
  t.equal(
    lastRequest,
    'POST /v1/box/fig/exec',
    'the archive is also removed when the response to the upload was lost',
  )
})

t.test('a download that ends early leaves nothing on this machine', async (t) => {
  const tar = execFileSync('tar', ['-C', localDir, '-c', 'tree'])
  fake.handleNext('GET /v1/box/fig/download', (response) => {
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
    fake.handleNext('GET /v1/box/fig/download', (response) => {
      response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/top' })
      response.end(tar)
    })
    const result = await cp('fig:top', join(attackDir, 'received'))
    t.match(result, { code: 1 }, name)
    t.same((await readdir(attackDir)).sort(), ['outside.txt', 'source'], name)
    t.equal(await readFile(join(attackDir, 'outside.txt'), 'utf8'), 'mine', name)
  }
})
