// Reading the spool of a box from its disk, whose files the box controls.
import { execFileSync } from 'node:child_process'
import { chownSync, linkSync, mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { readSpool } from '../../../../coordinator/providers/parts/read-spool.ts'
import { formatSegmentName } from '../../../../shared/report-spool.ts'
import { createTempDir } from '../../../support/temp-dir.ts'
import { testEachLevel } from '../local/each-level.ts'
import { isRoot, startBox, waitForFileText } from '../local/support.ts'

const MiB = 1024 * 1024

function createSpool(test: Test) {
  const stateDir = createTempDir(test, 'spool')
  const dir = join(stateDir, 'reports')
  mkdirSync(dir)
  const skipped: string[] = []
  return {
    stateDir,
    dir,
    skipped,
    pathOf: (seq: number) => join(dir, formatSegmentName(seq)),
    async read(): Promise<string[]> {
      const segments = await Readable.from(
        readSpool(stateDir, (path, problem) => skipped.push(`${path} ${problem}`)),
      ).toArray()
      return segments.map(String)
    },
  }
}

const script = `mkdir -p "$BOXWOOD_STATE/reports"
echo second >"$BOXWOOD_STATE/reports/0000000000000012.ndjson"
echo first >"$BOXWOOD_STATE/reports/0000000000000002.ndjson"
echo other >"$BOXWOOD_STATE/reports/other"
mkfifo "$BOXWOOD_STATE/reports/0000000000000003.ndjson"
echo yes >"$HOME/ready.new"; mv "$HOME/ready.new" "$HOME/ready"`

testEachLevel('reads the segments of a box in order', async (test, level) => {
  const { provider, spec, inHome } = await startBox(test, { level, script })
  await waitForFileText(inHome('ready'))
  await provider.stop(spec.boxId)
  const segments = await Readable.from(provider.readSpool?.(spec.boxId) ?? []).toArray()
  test.same(segments.map(String), ['first\n', 'second\n'])
})

t.test('reads nothing when there is no spool', async (test) => {
  const { stateDir, dir, skipped, read } = createSpool(test)
  test.same(await read(), [])
  rmSync(dir, { recursive: true })
  test.same(await read(), [])
  rmSync(stateDir, { recursive: true })
  test.same(await read(), [])
  test.same(skipped, [])
})

t.test('follows no links, and reads regular files of the user of the box only', async (test) => {
  const { stateDir, dir, skipped, pathOf, read } = createSpool(test)
  const secret = join(createTempDir(test, 'secret'), 'secret')
  writeFileSync(secret, 'secret')
  symlinkSync(secret, pathOf(1))
  execFileSync('mkfifo', [pathOf(2)])
  mkdirSync(pathOf(3))
  if (isRoot) chownSync(secret, 12_345, 12_345)
  // Of another user. As the user of the box, the file could be linked only by its owner.
  if (isRoot) linkSync(secret, pathOf(4))
  writeFileSync(pathOf(5), 'report')
  test.same(await read(), ['report'])
  test.equal(skipped.length, isRoot ? 4 : 3)

  for (const [path, target] of [
    [dir, join(stateDir, 'elsewhere')],
    [stateDir, `${stateDir}-elsewhere`],
  ] as const) {
    execFileSync('mv', [path, target])
    symlinkSync(target, path)
    test.same(await read(), [], `${path} is a symlink`)
    rmSync(path)
    execFileSync('mv', [target, path])
  }
  test.same(await read(), ['report'])
  rmSync(dir, { recursive: true })
  execFileSync('mkfifo', [dir])
  test.same(await read(), [], 'the directory is a FIFO')
})

t.test('continues in a directory that is replaced meanwhile', async (test) => {
  const { stateDir, dir, pathOf } = createSpool(test)
  writeFileSync(pathOf(1), 'first')
  writeFileSync(pathOf(2), 'second')
  const segments = readSpool(stateDir, () => undefined)
  test.equal(String((await segments.next()).value), 'first')
  execFileSync('mv', [dir, join(stateDir, 'moved')])
  symlinkSync('/proc', dir)
  test.equal(String((await segments.next()).value), 'second')
  test.ok((await segments.next()).done)
})

t.test('reads a limited number of bytes and entries', async (test) => {
  const { dir, skipped, pathOf, read } = createSpool(test)
  for (let seq = 1; seq <= 70; seq++) {
    writeFileSync(pathOf(seq), '')
    truncateSync(pathOf(seq), 1024 * MiB * 1024)
  }
  const sizes = (await read()).map(({ length }) => length)
  test.ok(Math.max(...sizes) <= 1.25 * MiB)
  test.ok(sizes.reduce((sum, size) => sum + size) <= 67 * MiB)
  test.match(skipped, [/the spool is larger than/])

  rmSync(dir, { recursive: true })
  mkdirSync(dir)
  for (let seq = 1; seq <= 1100; seq++) writeFileSync(pathOf(seq), 'x')
  test.equal((await read()).length, 1000)
  test.match(skipped[1], /more than 1000 entries/)
})
