// box cp keeps what the table in docs/cli-files.md lists, of random trees and files, up and down: the same as `cp -a`.
import { execFileSync } from 'node:child_process'
import { mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startCliCoordinator } from './coordinator.ts'
import { createRandom, type Random } from './random.ts'
import { createName, createTree, describeTree, joinBytes, removeSome } from './random-tree.ts'
import { type BoxArgument, runBox } from './run-box.ts'

const SEEDS = [1, 2, 3, 4, 5, 6]
const FILES_PER_TREE = 3

// New files on this machine follow the umask, which cp -a ignores.
process.umask(0)
const coordinator = await startCliCoordinator(t, ['fig'], { machines: 'local' })
const homeDir = coordinator.getHome('fig')
const localDir = t.testdir({})
const isRoot = process.getuid?.() === 0
const isRootOnBox = isRoot && statSync(homeDir).uid === 0
t.after(() => execFileSync('chmod', ['-R', 'u+rwx', localDir, homeDir]))

const inBytes = (directory: string, name: Buffer): Buffer => joinBytes(Buffer.from(directory), name)
const onBox = (path: Buffer): Buffer => Buffer.concat([Buffer.from('fig:'), path])

function createDirectory(parent: string, name: string): string {
  mkdirSync(join(parent, name))
  return join(parent, name)
}

/** Copies with cp -a into the directory. */
function copyWithCp(source: Buffer, directory: string): void {
  const input = Buffer.concat([source, Buffer.from('\0')])
  execFileSync('xargs', ['-0', 'cp', '-a', '-t', directory, '--'], { input })
}

/** Names that are UTF-8 are copied by requests, others by commands. */
const createTopName = (random: Random, seed: number): Buffer =>
  seed % 2 === 0 ? createName(random) : Buffer.from(`top-${seed}`)

function pickFiles(random: Random, files: readonly Buffer[]): Buffer[] {
  const rest = [...files]
  return Array.from({ length: Math.min(FILES_PER_TREE, rest.length) }, () =>
    rest.splice(random.below(rest.length), 1),
  ).flat()
}

for (const seed of SEEDS)
  t.test(`seed ${seed}`, async (t) => {
    const random = createRandom(seed)
    const name = createTopName(random, seed)
    const usedNames = new Set([name.toString('latin1')])
    /** An existing file keeps its mode. */
    const createTargetName = (): Buffer => {
      const target = createName(random)
      if (usedNames.has(target.toString('latin1'))) return createTargetName()
      usedNames.add(target.toString('latin1'))
      return target
    }
    const cp = async (...args: BoxArgument[]) => {
      const { code, stderr } = await runBox(coordinator, ['cp', '--', ...args], { cwd: localDir })
      const errors = stderr.split('\n').filter((line) => !/: skipped, not a regular file\.$/.test(line))
      t.equal(code, 0, errors.join('; '))
    }
    const compare = (actual: Buffer, expected: Buffer, path: string) =>
      t.same(
        describeTree(actual),
        describeTree(expected),
        `${path} ${JSON.stringify(expected.toString('latin1'))}`,
      )

    /** Existing directories keep their modes, and get new times. */
    const compareMerged = (actual: Buffer, expected: Buffer, existing: readonly string[]) => {
      const [received, wanted] = [describeTree(actual), describeTree(expected)]
      for (const path of existing) {
        t.match(received[path], /^directory /, 'an existing directory')
        delete received[path]
        delete wanted[path]
      }
      t.same(received, wanted, 'tree into an existing one')
    }

    const source = inBytes(createDirectory(localDir, `source-${seed}`), name)
    const files = createTree(random, source, { hasUnreadable: isRoot, scratchDir: localDir })
    const expected = createDirectory(localDir, `expected-${seed}`)
    copyWithCp(source, expected)
    const up = createDirectory(homeDir, `up-${seed}`)
    coordinator.giveFiles('fig')
    await cp(source, `fig:up-${seed}`)
    compare(inBytes(up, name), inBytes(expected, name), 'tree up')
    for (const file of pickFiles(random, files)) {
      const target = createTargetName()
      await cp(file, onBox(inBytes(`up-${seed}`, target)))
      compare(inBytes(up, target), file, 'file up')
    }

    const mergedUp = createDirectory(homeDir, `merged-${seed}`)
    copyWithCp(source, mergedUp)
    const existingUp = removeSome(random, inBytes(mergedUp, name))
    coordinator.giveFiles('fig')
    await cp(source, `fig:merged-${seed}`)
    compareMerged(inBytes(mergedUp, name), source, existingUp)

    const boxDir = createDirectory(homeDir, `down-${seed}`)
    const boxTree = inBytes(boxDir, name)
    const boxFiles = createTree(random, boxTree, { hasUnreadable: isRootOnBox, scratchDir: homeDir })
    const expectedDown = createDirectory(localDir, `expected-down-${seed}`)
    copyWithCp(boxTree, expectedDown)
    coordinator.giveFiles('fig')
    const down = createDirectory(localDir, `down-${seed}`)
    await cp(onBox(inBytes(`down-${seed}`, name)), `down-${seed}`)
    compare(inBytes(down, name), inBytes(expectedDown, name), 'tree down')
    for (const file of pickFiles(random, boxFiles)) {
      const target = createTargetName()
      await cp(onBox(file.subarray(homeDir.length + 1)), inBytes(`./down-${seed}`, target))
      compare(inBytes(down, target), file, 'file down')
    }
    const mergedDown = createDirectory(localDir, `merged-${seed}`)
    copyWithCp(boxTree, mergedDown)
    const existingDown = removeSome(random, inBytes(mergedDown, name))
    await cp(onBox(inBytes(`down-${seed}`, name)), `merged-${seed}`)
    compareMerged(inBytes(mergedDown, name), boxTree, existingDown)
  })
