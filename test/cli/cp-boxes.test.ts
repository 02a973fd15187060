// box cp from one box to another, through this machine.
import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const { id: plumId } = await coordinator.findBox('plum')
const [figDir, plumDir] = [coordinator.getHome('fig'), coordinator.getHome('plum')]
const localDir = t.testdir({ local: 'l' })
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
const SUCCESS = { code: 0, stdout: '', stderr: '' }

await mkdir(join(figDir, 'src', 'empty'), { recursive: true })
await writeFile(join(figDir, 'src', 'run.sh'), '#!/bin/sh\n')
await symlink('run.sh', join(figDir, 'src', 'link'))
coordinator.giveFiles('fig')
await chmod(join(figDir, 'src', 'run.sh'), 0o4775)
await chmod(join(figDir, 'src'), 0o750)

t.test('copies a file with its mode, without a temporary file on this machine', async (t) => {
  t.same(await cp('fig:src/run.sh', 'plum:'), SUCCESS)
  t.equal(await readFile(join(plumDir, 'run.sh'), 'utf8'), '#!/bin/sh\n')
  t.equal((await stat(join(plumDir, 'run.sh'))).mode & 0o7777, 0o775)
  await mkdir(join(plumDir, 'dir'))
  coordinator.giveFiles('plum')
  t.same(
    await cp('fig:src/run.sh', 'plum:dir'),
    SUCCESS,
    'an existing directory, which the request discovers',
  )
  t.same(await readdir(join(plumDir, 'dir')), ['run.sh'])
  t.same(await readdir(localDir), ['local'])
})

t.test('copies a directory with modes and links', async (t) => {
  t.same(await cp('fig:src', 'plum:copy'), SUCCESS)
  t.equal((await stat(join(plumDir, 'copy'))).mode & 0o7777, 0o750)
  t.equal((await stat(join(plumDir, 'copy', 'run.sh'))).mode & 0o777, 0o775)
  t.equal(await readlink(join(plumDir, 'copy', 'link')), 'run.sh')
  t.same(await cp('fig:src', 'plum:dir'), SUCCESS)
  t.same((await readdir(join(plumDir, 'dir', 'src'))).sort(), ['empty', 'link', 'run.sh'])
  t.same(await cp('fig:src/.', 'plum:dir'), SUCCESS)
  t.same((await readdir(join(plumDir, 'dir'))).sort(), ['empty', 'link', 'run.sh', 'src'])
  t.same((await readdir(plumDir)).sort(), ['copy', 'dir', 'run.sh'])
})

t.test('copies from this machine and from a box in one command', async (t) => {
  await mkdir(join(plumDir, 'both'))
  coordinator.giveFiles('plum')
  t.same(await cp('local', 'fig:src/run.sh', 'plum:both'), SUCCESS)
  t.same((await readdir(join(plumDir, 'both'))).sort(), ['local', 'run.sh'])
})

t.test('an error names the box that failed', async (t) => {
  t.match(await cp('fig:missing', 'plum:'), {
    code: 5,
    stderr: 'box: missing: no such file or directory on fig.\n',
  })
  t.match(await cp('fig:src/run.sh', 'plum:no/x'), {
    code: 5,
    stderr: /^box: plum: the directory no does not exist\./,
  })
  t.match(await cp('fig:src', 'plum:no/x'), {
    code: 5,
    stderr: /^box: plum: the directory no does not exist\./,
  })
  t.match(await cp('fig:src', 'kiwi:'), { code: 5, stderr: /No such box: 'kiwi'/ })
  const denied = { ok: false, error: { code: 'permission_denied', message: 'x: denied.' } }
  coordinator.respondNext('GET /v1/box/fig/download', 403, denied)
  t.match(await cp('fig:x', 'plum:x'), { code: 1, stderr: 'box: fig: x: denied. (permission_denied)\n' })
  coordinator.respondNext('PUT /v1/box/plum/upload', 403, denied)
  t.match(await cp('fig:src/run.sh', 'plum:x'), {
    code: 1,
    stderr: 'box: plum: x: denied. (permission_denied)\n',
  })
})

t.test('a source that ends early leaves nothing on the destination', async (t) => {
  const before = await readdir(plumDir)
  for (const headers of [{ 'content-length': 1_000_000 }, { 'x-service-content': 'directory' }]) {
    coordinator.failNext('GET /v1/box/fig/download', (response) => {
      response.writeHead(200, { 'x-service-path': '/home/x', ...headers })
      response.write(Buffer.alloc(2048), () => response.destroy())
    })
    t.match(await cp('fig:x', 'plum:partial'), { code: 3, stderr: /transfer was interrupted/ })
  }
  t.same(await readdir(plumDir), before)
})

t.test('refuses a copy within one box, and prints the command for it', async (t) => {
  for (const destination of ['fig:copy of src', `${plumId}:copy`]) {
    const source = destination.startsWith('fig') ? 'fig:src' : 'plum:copy'
    t.match(await cp(source, destination), { code: 2, stderr: /same box.*box exec (fig|plum) -- cp -a / })
  }
  t.match(await cp('fig:src', 'fig:copy of src'), { stderr: /cp -a src 'copy of src'\n$/ })
})
