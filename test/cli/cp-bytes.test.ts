// box cp of names that are not UTF-8, also as arguments: no byte changes, and two names never become one.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { decodePath, toPathBytes } from '../../cli/copy/path-bytes.ts'
import { createSeededRandom, randomMalformedUtf8 } from '../support/random.ts'
import { startCliCoordinator } from './coordinator.ts'
import { joinBytes } from './random-tree.ts'
import { type BoxArgument, runBox } from './run-box.ts'

const coordinator = await startCliCoordinator(t, ['fig', 'plum'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const cp = (...args: BoxArgument[]) => runBox(coordinator, ['cp', ...args], { cwd: localDir })
const SUCCESS = { code: 0, stdout: '', stderr: '' }

const FF = Buffer.from([0xff])
const FE = Buffer.from([0xfe])
/** A character after a byte that could begin one. */
const CUT = Buffer.from([0xe2, 0x82, 0x41, 0x0a])
const NAMES = [FF, FE, CUT, Buffer.from('\uFFFD')]
const onBox = (name: Buffer, box = 'fig') => Buffer.concat([Buffer.from(`${box}:`), name])
const listBytes = (directory: string | Buffer) =>
  readdirSync(directory, { encoding: 'buffer' }).sort(Buffer.compare)
const inBytes = (directory: string, name: Buffer) => joinBytes(Buffer.from(directory), name)

t.test('paths keep their bytes', async (t) => {
  const random = createSeededRandom(1)
  for (let count = 0; count < 1000; count++) {
    const bytes = randomMalformedUtf8(random, 1 + (count % 8))
    if (!toPathBytes(decodePath(bytes)).equals(bytes)) t.fail(bytes.toString('hex'))
  }
  t.equal(decodePath(Buffer.from('é\uFFFD')), 'é\uFFFD')
})

t.test('files', async (t) => {
  for (const name of NAMES) writeFileSync(inBytes(localDir, name), name)
  for (const name of NAMES) t.same(await cp(Buffer.concat([Buffer.from('./'), name]), onBox(name)), SUCCESS)
  t.same(listBytes(homeDir), NAMES.toSorted(Buffer.compare))
  mkdirSync(join(localDir, 'down'))
  for (const name of NAMES) t.same(await cp(onBox(name), 'down'), SUCCESS)
  t.same(listBytes(join(localDir, 'down')), NAMES.toSorted(Buffer.compare))
  for (const name of NAMES) t.same(readFileSync(inBytes(join(localDir, 'down'), name)), name)
})

t.test('directories', async (t) => {
  mkdirSync(join(localDir, 'tree'))
  mkdirSync(inBytes(join(localDir, 'tree'), FF))
  for (const name of NAMES)
    writeFileSync(inBytes(`${localDir}/tree`, Buffer.concat([FF, Buffer.from('/'), name])), name)
  t.same(await cp('tree', 'fig:copy'), SUCCESS)
  t.same(listBytes(inBytes(join(homeDir, 'copy'), FF)), NAMES.toSorted(Buffer.compare))
  t.same(await cp('fig:copy', 'back'), SUCCESS)
  t.same(listBytes(inBytes(join(localDir, 'back'), FF)), NAMES.toSorted(Buffer.compare))
  t.same(await cp(onBox(joinBytes(Buffer.from('copy'), FF)), 'part'), SUCCESS, 'a directory below')
  t.same(listBytes(join(localDir, 'part')), NAMES.toSorted(Buffer.compare))
  t.same(await cp('fig:copy', onBox(FE, 'plum').subarray(0, 5)), SUCCESS)
  t.same(await cp(onBox(joinBytes(Buffer.from('copy'), FF)), 'plum:'), SUCCESS, 'to another box')
  t.same(listBytes(inBytes(coordinator.getHome('plum'), FF)), NAMES.toSorted(Buffer.compare))
})

t.test('--mkpath, several sources and --json', async (t) => {
  const target = joinBytes(Buffer.from('new'), FF)
  t.same(await cp('--mkpath', FF, FE, onBox(target)), SUCCESS)
  t.same(listBytes(inBytes(homeDir, target)), [FE, FF])
  t.same(await cp('--mkpath', onBox(FF), onBox(FE), target), SUCCESS)
  t.same(listBytes(inBytes(localDir, target)), [FE, FF])
  const { stdout } = await cp('--json', FF, onBox(FF))
  t.match(JSON.parse(stdout), { copied: [{ source: '\udcff', path: /\/\udcff$/ }] })
})

t.test('errors', async (t) => {
  const missing = Buffer.from([0xfd])
  t.match(await cp(missing, 'fig:'), {
    code: 5,
    stderr: 'box: \uFFFD: no such file or directory on this machine.\n',
  })
  t.match(await cp(onBox(missing), '.'), {
    code: 5,
    stderr: 'box: \uFFFD: no such file or directory on fig.\n',
  })
  t.match(await cp(FF, onBox(Buffer.from([0xfd, 0x2f, 0x78]))), {
    code: 5,
    stderr: 'box: fig: the directory \uFFFD does not exist. --mkpath creates it.\n',
  })
  t.match(await cp(FF, Buffer.concat([FF, Buffer.from('x:y')])), {
    code: 5,
    stderr: /No such box: '\uFFFDx'/,
  })
})
