// box cp with several sources: the destination is a directory, each failure is reported, missing directories are created.
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({ 'a.txt': 'a', 'b.txt': 'b', tree: { inner: 'i' }, more: { 'a.txt': 'another' } })
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
const SUCCESS = { code: 0, stdout: '', stderr: '' }

t.test('uploads files and directories into a directory, over one connection', async (t) => {
  await mkdir(join(homeDir, 'work'))
  await writeFile(join(homeDir, 'work', 'a.txt'), 'old')
  coordinator.giveFiles('fig')
  await symlink('a.txt', join(localDir, 'link.txt'))
  const first = coordinator.requests.length
  t.same(await cp('a.txt', 'b.txt', 'link.txt', 'tree', 'fig:work'), SUCCESS)
  t.same((await readdir(join(homeDir, 'work'))).sort(), ['a.txt', 'b.txt', 'link.txt', 'tree'])
  t.equal(await readFile(join(homeDir, 'work', 'a.txt'), 'utf8'), 'a')
  t.equal(await readFile(join(homeDir, 'work', 'link.txt'), 'utf8'), 'a')
  t.equal(await readFile(join(homeDir, 'work', 'tree', 'inner'), 'utf8'), 'i')
  t.match(
    coordinator.requests.slice(first).map(({ line }) => line),
    ['GET /api/v1/me?box=fig', 'POST /v1/box/fig/exec', /^GET \/v1\/box\/fig\/exec\/.*\/attach/],
  )
})

t.test('downloads files and directories into a directory', async (t) => {
  await mkdir(join(localDir, 'inbox'))
  const first = coordinator.requests.length
  t.same(await cp('fig:work/a.txt', 'fig:work/tree', 'inbox/'), SUCCESS)
  t.same((await readdir(join(localDir, 'inbox'))).sort(), ['a.txt', 'tree'])
  t.equal(coordinator.requests.slice(first).filter(({ line }) => line === 'GET /api/v1/me?box=fig').length, 1)
})

t.test('copies nothing when the destination is not a directory', async (t) => {
  await writeFile(join(homeDir, 'file'), 'unchanged')
  coordinator.giveFiles('fig')
  t.match(await cp('a.txt', 'b.txt', 'fig:missing'), {
    code: 5,
    stderr: 'box: fig: the directory missing does not exist. --mkpath creates it.\n',
  })
  t.match(await cp('a.txt', 'b.txt', 'fig:file'), { code: 5, stderr: 'box: fig: file is not a directory.\n' })
  t.equal(await readFile(join(homeDir, 'file'), 'utf8'), 'unchanged')
  for (const destination of ['missing', 'a.txt'])
    t.match(await cp('fig:work/a.txt', 'fig:work/b.txt', destination), {
      code: 5,
      stderr:
        destination === 'missing'
          ? 'box: missing: no such directory on this machine. --mkpath creates it.\n'
          : 'box: a.txt is not a directory on this machine.\n',
    })
  t.equal(await readFile(join(localDir, 'a.txt'), 'utf8'), 'a')
})

t.test('copies the other sources when one fails, and exits with the code of the first failure', async (t) => {
  await mkdir(join(homeDir, 'rest'))
  coordinator.giveFiles('fig')
  t.match(await cp('a.txt', 'missing', 'tree', 'more/a.txt', 'fig:rest'), {
    code: 5,
    stderr:
      'box: missing: no such file or directory on this machine.\n' +
      'box: more/a.txt: another source has the same name. Copy it separately.\n',
  })
  t.same((await readdir(join(homeDir, 'rest'))).sort(), ['a.txt', 'tree'])
  await mkdir(join(localDir, 'rest'))
  const result = await cp('--json', 'fig:missing', 'fig:rest/a.txt', 'rest')
  t.match(result, { code: 5, stderr: 'box: missing: no such file or directory on fig.\n' })
  t.match(JSON.parse(result.stdout), {
    ok: false,
    copied: [{ path: 'rest/a.txt' }],
    failed: [{ source: 'fig:missing', exitCode: 5 }],
  })
  t.same(await readdir(join(localDir, 'rest')), ['a.txt'])
})

t.test('--mkpath creates missing directories on both sides', async (t) => {
  t.same(await cp('--mkpath', 'a.txt', 'fig:new/dir/'), SUCCESS)
  t.same(await cp('--mkpath', 'a.txt', 'fig:new/other/renamed'), SUCCESS)
  t.same(await cp('--mkpath', 'a.txt', 'b.txt', 'fig:new/several'), SUCCESS)
  t.same(await cp('--mkpath', 'tree', 'fig:new/deep/copy'), SUCCESS)
  t.same((await readdir(join(homeDir, 'new'), { recursive: true })).sort(), [
    ...['deep', 'deep/copy', 'deep/copy/inner', 'dir', 'dir/a.txt', 'other', 'other/renamed'],
    ...['several', 'several/a.txt', 'several/b.txt'],
  ])
  t.same(await cp('--mkpath', 'fig:new/dir/a.txt', 'here/and/there'), SUCCESS)
  t.equal(await readFile(join(localDir, 'here/and/there'), 'utf8'), 'a')
})

t.test('the error of a missing parent directory names it and the option', async (t) => {
  t.match(await cp('a.txt', 'fig:no/dir/'), {
    code: 5,
    stderr: /fig: the directory no\/dir does not exist\. --mkpath/,
  })
  t.match(await cp('tree', 'fig:no/dir/x'), {
    code: 5,
    stderr: /fig: the directory no\/dir does not exist\. --mkpath/,
  })
  t.match(await cp('fig:file', 'no/dir/x'), { code: 5, stderr: /^box: no\/dir: no such directory.*--mkpath/ })
})

t.test('accepts the options of cp that have no effect', async (t) => {
  for (const option of ['-r', '-R', '--recursive', '-a', '-p', '-rp'])
    t.same(await cp(option, 'tree', `fig:opt${option}`), SUCCESS, option)
  t.ok((await stat(join(homeDir, 'opt-rp', 'inner'))).isFile())
})

t.test('stdin and stdout are single', async (t) => {
  t.match(await cp('-', 'a.txt', 'fig:work'), { code: 2, stderr: /cannot be combined with several sources/ })
  t.match(await cp('fig:file', 'fig:work', '-'), {
    code: 2,
    stderr: /cannot be combined with several sources/,
  })
})
