// box cp of files whose size in stat is wrong: those of the kernel, and files that change while they are copied.
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { openSizedFile, readExactly } from '../../cli/copy/read-local-file.ts'
import { startCliCoordinator } from './coordinator.ts'
import { runBox } from './run-box.ts'

/** Size 0. */
const PROC_FILE = '/proc/version'
const PROC_DIR = '/proc/sys/kernel/random'
/** A page, with less content. */
const SYS_FILE = '/sys/kernel/mm/transparent_hugepage/enabled'
const SYS_DIR = '/sys/kernel/mm/transparent_hugepage/khugepaged'
/** Size 0, and more than 1 MiB. */
const LARGE_PROC_FILE = '/proc/kallsyms'
const skipSys = { skip: !existsSync(SYS_FILE) && 'the kernel has no such file' }
const skipLarge = {
  skip:
    !(existsSync(LARGE_PROC_FILE) && readFileSync(LARGE_PROC_FILE).length > 1024 * 1024) &&
    'the kernel has no such file',
}

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const cp = (...args: string[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
const SUCCESS = { code: 0, stdout: '', stderr: '' }

t.test('a file of size 0 is read to its end', async (t) => {
  t.equal(statSync(PROC_FILE).size, 0)
  const content = readFileSync(PROC_FILE)
  t.same(await cp(PROC_FILE, 'fig:up'), SUCCESS)
  t.same(readFileSync(join(homeDir, 'up')), content)
  t.same(await cp(`fig:${PROC_FILE}`, 'down'), SUCCESS)
  t.same(readFileSync(join(localDir, 'down')), content)
  t.same(await cp(`fig:${PROC_FILE}`, 'plum:across'), SUCCESS)
  t.same(readFileSync(join(coordinator.getHome('plum'), 'across')), content)
  mkdirSync(join(homeDir, 'several'))
  coordinator.giveFiles('fig')
  t.same(await cp(PROC_FILE, `${PROC_DIR}/boot_id`, 'fig:several'), SUCCESS)
  t.same(readFileSync(join(homeDir, 'several', 'version')), content)
})

t.test('so are those of a directory', async (t) => {
  const content = readFileSync(join(PROC_DIR, 'boot_id'))
  t.same(await cp(PROC_DIR, 'fig:random'), SUCCESS)
  t.same(readFileSync(join(homeDir, 'random', 'boot_id')), content)
  t.same(await cp(`fig:${PROC_DIR}`, 'random'), SUCCESS)
  t.same(readFileSync(join(localDir, 'random', 'boot_id')), content)
})

t.test('a file that has less than its size', skipSys, async (t) => {
  const content = readFileSync(SYS_FILE)
  t.not(statSync(SYS_FILE).size, content.length)
  t.same(await cp(SYS_FILE, 'fig:sys-up'), SUCCESS)
  t.same(readFileSync(join(homeDir, 'sys-up')), content)
  t.same(await cp(`fig:${SYS_FILE}`, 'sys-down'), SUCCESS)
  t.same(readFileSync(join(localDir, 'sys-down')), content)
  t.same(await cp(SYS_DIR, 'fig:sys-tree'), SUCCESS)
  t.same(await cp(`fig:${SYS_DIR}`, 'sys-tree'), SUCCESS)
  const name = 'pages_to_scan'
  for (const dir of [homeDir, localDir])
    t.same(readFileSync(join(dir, 'sys-tree', name)), readFileSync(join(SYS_DIR, name)))
})

t.test('a file of size 0 with more than 1 MiB', skipLarge, async (t) => {
  t.same(await cp(LARGE_PROC_FILE, 'fig:large-up'), SUCCESS)
  const lines = readFileSync(LARGE_PROC_FILE, 'utf8').split('\n').length
  const countLines = (path: string) => readFileSync(path, 'utf8').split('\n').length
  t.equal(countLines(join(homeDir, 'large-up')), lines)
  t.same(await cp(`fig:${LARGE_PROC_FILE}`, 'large-down'), SUCCESS)
  t.equal(countLines(join(localDir, 'large-down')), lines)
  const file = await openSizedFile(Buffer.from(LARGE_PROC_FILE))
  t.equal(
    Buffer.concat([...file.chunks()])
      .toString()
      .split('\n').length,
    lines,
    'in a directory',
  )
  file.close()
})

t.test('a large file that grows is copied up to its size, and one that shrinks is an error', async (t) => {
  const path = join(localDir, 'log')
  const size = 2_000_000
  const readers = {
    'a file': () => readExactly(path, size)[Symbol.asyncIterator](),
    'a file in a directory': async () => (await openSizedFile(Buffer.from(path))).chunks(),
  }
  for (const [name, open] of Object.entries(readers)) {
    const read = async (change: () => void) => {
      writeFileSync(path, Buffer.alloc(size))
      const chunks = await open()
      let length = (await chunks.next()).value?.length ?? 0
      change()
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) length += next.value.length
      return length
    }
    t.equal(await read(() => appendFileSync(path, 'more')), size, name)
    await t.rejects(
      read(() => truncateSync(path, 10)),
      { message: /log became shorter during the copy\. Copy it again\.$/ },
      name,
    )
  }
})
