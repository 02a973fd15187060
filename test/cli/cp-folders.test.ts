// box cp of folders: links, empty folders, executables and any name intact; whole or nothing; nothing reaches outside.
import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startFakeCoordinator } from './fake-coordinator.ts'
import { runBox } from './run-box.ts'

// Modes are compared: what others set must not show.
process.umask(0o022)
const fake = await startFakeCoordinator(t)
await fake.addBox('fig')
const home = fake.home('fig')
const here = t.testdir({})
const cp = (from: string, to: string) => runBox(fake.url, ['cp', from, to], { cwd: here })
const done = { code: 0, stdout: '', stderr: '' }

async function makeTree(folder: string): Promise<void> {
  await mkdir(join(folder, 'empty'), { recursive: true })
  await mkdir(join(folder, 'sealed'))
  await writeFile(join(folder, 'sealed', 'inside'), 'x')
  await writeFile(join(folder, 'grün 🌳'), 'tree')
  await writeFile(join(folder, '@name'), 'at')
  await writeFile(join(folder, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 })
  await symlink('/etc/hostname', join(folder, 'absolute'))
  await symlink('grün 🌳', join(folder, 'relative'))
  await chmod(join(folder, 'sealed'), 0o555)
}

/** name → mode and content, for a folder and all below it. */
async function describe(folder: string, prefix = ''): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const facts = await lstat(path)
    if (facts.isSymbolicLink()) found[prefix + name] = `-> ${await readlink(path)}`
    else if (facts.isDirectory()) {
      found[`${prefix + name}/`] = (facts.mode & 0o777).toString(8)
      Object.assign(found, await describe(path, `${prefix + name}/`))
    } else found[prefix + name] = `${(facts.mode & 0o777).toString(8)} ${await readFile(path, 'utf8')}`
  }
  return found
}

const tree = join(here, 'tree')
// Before the folders are removed: an ordinary user cannot empty a sealed one.
t.after(() => execFileSync('chmod', ['-R', 'u+w', here, home]))
await makeTree(tree)
const wanted = await describe(tree)

t.test('up as a new folder, into a folder that is there, and its contents', async (t) => {
  t.same(await cp('tree', 'fig:copy'), done)
  t.same(await describe(join(home, 'copy')), wanted)
  await mkdir(join(home, 'work'))
  t.same(await cp('tree', 'fig:work'), done)
  t.same(await describe(join(home, 'work', 'tree')), wanted)
  await mkdir(join(home, 'into'))
  await writeFile(join(home, 'into', 'kept'), 'kept')
  t.same(await cp('tree/.', 'fig:into'), done)
  t.same(await describe(join(home, 'into')), { ...wanted, kept: '644 kept' })
  t.same((await readdir(home)).sort(), ['copy', 'into', 'work'], 'nothing temporary is left')
})

t.test('down as a new folder, into a folder that is there, and merged', async (t) => {
  t.same(await cp('fig:copy', 'down'), done)
  t.same(await describe(join(here, 'down')), wanted)
  await mkdir(join(here, 'inbox', 'copy', 'empty'), { recursive: true })
  await writeFile(join(here, 'inbox', 'copy', 'empty', 'kept'), 'kept')
  t.same(await cp('fig:copy', 'inbox'), done)
  t.same(await describe(join(here, 'inbox', 'copy')), { ...wanted, 'empty/kept': '644 kept' })
  t.same((await readdir(here)).sort(), ['down', 'inbox', 'tree'])
})

t.test('an empty folder', async (t) => {
  t.same(await cp('tree/empty', 'fig:hollow'), done)
  t.same(await cp('fig:hollow', 'hollow'), done)
  t.same(await readdir(join(here, 'hollow')), [])
})

t.test('a folder and a file of the same name are not mixed up', async (t) => {
  await writeFile(join(home, 'file'), 'x')
  t.match(await cp('tree', 'fig:file'), { code: 1, stderr: /file is not a folder/ })
  await mkdir(join(here, 'clash', 'copy', 'run.sh'), { recursive: true })
  t.match(await cp('fig:copy', 'clash'), { code: 1, stderr: /run\.sh.*Nothing was changed/ })
  t.same(await readdir(join(here, 'clash', 'copy')), ['run.sh'])
})

t.test('an upload that fails removes its tar from the box', async (t) => {
  const before = await readdir(home)
  t.match(await cp('tree', 'fig:no/such/parent'), { code: 1, stderr: /could not take the folder/ })
  fake.answerNext('PUT /v1/box/fig/upload', (response, request) => {
    request.resume()
    request.once('end', () => response.destroy())
  })
  t.match(await cp('tree', 'fig:broken'), { code: 3 })
  t.same(await readdir(home), before)
  const last = fake.requests.at(-1)?.line
  t.equal(last, 'POST /v1/box/fig/exec', 'it is removed even when nobody knows whether it arrived')
})

t.test('a tar that breaks off leaves nothing here', async (t) => {
  const tar = execFileSync('tar', ['-C', here, '-c', 'tree'])
  fake.answerNext('GET /v1/box/fig/download', (response) => {
    response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/tree' })
    response.write(tar.subarray(0, 2048), () => response.destroy())
  })
  const before = await readdir(here)
  t.match(await cp('fig:tree', 'broken'), { code: 3, stderr: /broke off/ })
  t.same(await readdir(here), before)
})

t.test('a box that sends a hostile archive writes nothing outside', async (t) => {
  const evil = t.testdir({ 'outside.txt': 'mine', make: { top: { 'a.txt': 'evil' } } })
  const make = join(evil, 'make')
  const archives = {
    '..': ['top', '--transform=s,top/a.txt,top/../../outside.txt,', '-P'],
    absolute: ['top', `--transform=s,top/a.txt,${evil}/outside.txt,`, '-P'],
    link: ['top', 'link/a.txt', '--transform=s,^link/,top/link/,'],
  }
  await symlink(evil, join(make, 'top', 'link'))
  await mkdir(join(make, 'link'))
  await writeFile(join(make, 'link', 'a.txt'), 'evil')
  for (const [name, args] of Object.entries(archives)) {
    const tar = execFileSync('tar', ['-C', make, '-c', ...args])
    fake.answerNext('GET /v1/box/fig/download', (response) => {
      response.writeHead(200, { 'x-service-content': 'directory', 'x-service-path': '/home/top' })
      response.end(tar)
    })
    const seen = await cp('fig:top', join(evil, 'received'))
    t.match(seen, { code: 1 }, name)
    t.same((await readdir(evil)).sort(), ['make', 'outside.txt'], name)
    t.equal(await readFile(join(evil, 'outside.txt'), 'utf8'), 'mine', name)
  }
})
