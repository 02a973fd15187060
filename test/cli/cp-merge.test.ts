// box cp into an existing directory: when not every file can be copied, nothing is changed.
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { describeTree } from './random-tree.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
t.after(() => execFileSync('chmod', ['-R', 'u+rwx', localDir, homeDir]))

/** Without the directory itself: the temporary directory in it changes its time. */
const describeEntries = (directory: string) => ({ ...describeTree(Buffer.from(directory)), '': '' })

type Kind = 'file' | 'directory' | 'link' | 'link to a directory'

function createEntry(path: string, kind: Kind): void {
  mkdirSync(dirname(path), { recursive: true })
  if (kind === 'file') writeFileSync(path, 'old')
  else if (kind === 'directory') mkdirSync(path)
  else symlinkSync(kind === 'link' ? 'nowhere' : '/tmp', path)
}

const CONFLICTS: [source: Kind, destination: Kind][] = [
  ['file', 'directory'],
  ['link', 'directory'],
  ['link to a directory', 'directory'],
  ['directory', 'file'],
  ['directory', 'link'],
  ['directory', 'link to a directory'],
]

for (const [index, [from, to]] of CONFLICTS.entries())
  for (const path of ['conflict', '.hidden', 'deep/..x/con flict'])
    t.test(`a ${from} does not replace a ${to}: ${path}`, async (t) => {
      const name = `src-${index}-${path.replaceAll('/', '-')}`
      const directions = [
        { source: localDir, destination: homeDir, args: [name, 'fig:'] },
        { source: homeDir, destination: localDir, args: [`fig:down-${name}`, '.'] },
      ]
      for (const { source, destination, args } of directions) {
        const tree = args[1] === '.' ? `down-${name}` : name
        createEntry(join(source, tree, path), from)
        for (const other of ['aaa', 'zzz', 'deep/aaa', 'deep/zzz', 'new/inner'])
          createEntry(join(source, tree, other), 'file')
        createEntry(join(destination, tree, path), to)
        createEntry(join(destination, tree, 'deep/aaa'), 'file')
        coordinator.giveFiles('fig')
        const before = describeEntries(join(destination, tree))
        const { code, stderr } = await cp(...args)
        t.equal(code, 1)
        t.match(stderr, /Nothing was changed\.\n$/)
        t.ok(stderr.includes(`${tree}/${path} `), stderr)
        t.same(describeEntries(join(destination, tree)), before)
      }
    })

t.test('new directories keep their times and modes, also without permissions', async (t) => {
  for (const [source, destination, args] of [
    [localDir, homeDir, ['times', 'fig:']],
    [homeDir, localDir, ['fig:times-down', '.']],
  ] as const) {
    const name = args[1] === '.' ? 'times-down' : 'times'
    for (const mode of [0o755, 0o555]) {
      const directory = join(source, name, 'existing', mode.toString(8))
      createEntry(join(directory, 'inner', 'file'), 'file')
      chmodSync(join(directory, 'inner'), mode)
      for (const path of [join(directory, 'inner'), directory]) utimesSync(path, 1e9, 1e9)
      chmodSync(directory, mode)
    }
    mkdirSync(join(destination, name, 'existing'), { recursive: true })
    coordinator.giveFiles('fig')
    t.match(await cp(...args), { code: 0, stderr: '' })
    const compare = (path: string) =>
      t.same(
        describeTree(Buffer.from(join(destination, name, 'existing', path))),
        describeTree(Buffer.from(join(source, name, 'existing', path))),
        path,
      )
    compare('755')
    compare('555')
  }
})

t.test('an existing directory that is not writable on the box', async (t) => {
  createEntry(join(localDir, 'denied', 'aaa'), 'file')
  createEntry(join(localDir, 'denied', 'deep', 'file'), 'file')
  createEntry(join(homeDir, 'denied', 'deep', 'other'), 'file')
  coordinator.giveFiles('fig')
  chmodSync(join(homeDir, 'denied', 'deep'), 0o555)
  const before = describeEntries(join(homeDir, 'denied'))
  t.match(await cp('denied', 'fig:'), {
    code: 1,
    stderr: /^box: fig: .*denied\/deep: permission denied\. Nothing was changed\.\n$/,
  })
  t.same(describeEntries(join(homeDir, 'denied')), before)
})
