// box cp of several sources: one copy never replaces another.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum', 'kiwi'], { machines: 'local' })
const kiwiDir = coordinator.getHome('kiwi')
const localDir = t.testdir({
  l1: { same: 'L1', only1: 'x' },
  l2: { same: 'L2', only2: 'x', sub: { deep: 'L2' } },
  l3: { sub: { deep: 'L3', other: 'x' } },
  fig: { file: 'x' },
})
symlinkSync('l2/sub', join(localDir, 'sub'))
for (const [box, content] of [
  ['fig', 'A'],
  ['plum', 'B'],
] as const) {
  for (const directory of ['k1', 'k2']) {
    mkdirSync(join(coordinator.getHome(box), directory, 'tree'), { recursive: true })
    writeFileSync(join(coordinator.getHome(box), directory, 'same'), `${content} ${directory}`)
    writeFileSync(join(coordinator.getHome(box), directory, 'tree', 'inner'), `${content} ${directory}`)
  }
  coordinator.giveFiles(box)
}
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })

let directories = 0
/** An empty destination on this machine, and its name. */
function createDestination() {
  const name = `to-${directories++}`
  mkdirSync(join(localDir, name))
  return { name, list: () => readdirSync(join(localDir, name)), read: (path: string) => read(name, path) }
}
const read = (name: string, path: string) => readFileSync(join(localDir, name, path), 'utf8')

const REFUSED = /: another source has the same name\. Copy it separately\.\n$/

t.test('refuses the second of two sources on boxes that have one name', async (t) => {
  for (const sources of [
    ['fig:k1/same', 'fig:k2/same'],
    ['fig:k1/same', 'plum:k1/same'],
    ['fig:k1/same', 'fig:k1/same'],
    ['fig:k1/same', 'fig:./k2//same'],
  ]) {
    const { name, list, read } = createDestination()
    const result = await cp(...sources, name)
    t.match(result, { code: 1, stderr: `box: ${sources[1]}: another source has the same name.` })
    t.same(list(), ['same'])
    t.equal(read('same'), 'A k1', 'the first source is kept')
  }
  const { name, read } = createDestination()
  t.match(await cp('fig:k1/tree/', 'fig:k2/tree//', name), { code: 1, stderr: REFUSED })
  t.equal(read('tree/inner'), 'A k1')
})

t.test('the name of a box is the name of its home directory', async (t) => {
  const { name, list } = createDestination()
  t.match(await cp('fig:', 'fig:~', name), { code: 1, stderr: REFUSED })
  t.same(list(), ['fig'])
})

t.test('sources on this machine and on boxes have names in common', async (t) => {
  t.match(await cp('l1/same', 'fig:k1/same', 'kiwi:'), { code: 1, stderr: /fig:k1\/same: another/ })
  t.equal(readFileSync(join(kiwiDir, 'same'), 'utf8'), 'L1')
  t.match(await cp('fig:k1/same', 'l1/same', 'kiwi:'), { code: 1, stderr: /l1\/same: another/ })
  t.equal(readFileSync(join(kiwiDir, 'same'), 'utf8'), 'A k1')
  t.match(await cp('fig', 'fig:', 'kiwi:'), { code: 1, stderr: /fig:: another/ })
  t.match(await cp('l1/.', 'fig:k1/same', 'kiwi:'), { code: 1, stderr: /fig:k1\/same: another/ })
  t.same(readdirSync(kiwiDir).sort(), ['fig', 'only1', 'same'])
})

t.test('contents of directories may not have a file in common', async (t) => {
  const list = (path: string) => readdirSync(join(kiwiDir, path)).sort()
  mkdirSync(join(kiwiDir, 'merged'))
  coordinator.giveFiles('kiwi')
  t.match(await cp('l1/.', 'l2/.', 'kiwi:merged'), { code: 1, stderr: /^box: l2\/\. has same: another/ })
  t.same(list('merged'), ['only1', 'same'])
  t.match(await cp('l2/.', 'l3/.', 'kiwi:merged'), { code: 1, stderr: /^box: l3\/\. has sub\/deep: another/ })
  t.match(await cp('l2/same', 'l1/.', 'kiwi:merged'), { code: 1, stderr: /^box: l1\/\. has same: another/ })
  t.match(await cp('l3/.', 'sub', 'kiwi:merged'), { code: 1, stderr: /^box: sub has deep: another/ })
  t.match(await cp('l1/.', 'l3/.', 'kiwi:merged'), { code: 0, stderr: '' })
  t.match(await cp('l1/same', 'l3/.', 'kiwi:merged'), { code: 0, stderr: '' })
})

t.test('contents of a directory on a box are the only source', async (t) => {
  for (const source of ['fig:k1/.', 'fig:.', 'fig:k1/tree/..']) {
    const { name, list } = createDestination()
    t.match(await cp(source, 'plum:k2/same', name), { code: 1, stderr: /must be the only source/ })
    t.same(list(), ['same'])
    t.match(await cp(source, name), { code: 0 })
  }
})
