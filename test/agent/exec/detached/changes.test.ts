// Whoever follows a log hears of every write to it, by what the runner says and without it.
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  closeSync,
  constants,
  openSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openChanges } from '../../../../agent/exec/detached/changes.ts'
import { STREAMS, type StreamName } from '../../../../agent/exec/detached/types.ts'
import { tempFolder } from '../../../support/temp-folder.ts'
import { until } from '../exec-app.ts'
import { addition } from './support.ts'

/** A folder with two empty logs, and what was heard of either. */
function newFolder(t: Test) {
  const folder = tempFolder(t, 'changes')
  for (const stream of STREAMS) writeFileSync(join(folder, stream), '')
  const changes = openChanges(folder)
  const told: string[] = []
  const heard: Record<StreamName, number> = { stdout: 0, stderr: 0 }
  return {
    folder,
    heard,
    /** What was told with its bytes. */
    told,
    path: join(folder, 'changes'),
    follow(stream: StreamName) {
      const stop = changes.watch(stream, (added) => {
        heard[stream] += 1
        if (added !== undefined) told.push(`${stream} ${added.offset} ${added.bytes}`)
      })
      t.teardown(stop)
      return stop
    },
    append: (stream: StreamName) => appendFileSync(join(folder, stream), 'more'),
  }
}

/** The runner's side of it. */
function makeFifo(t: Test, path: string) {
  execFileSync('mkfifo', [path])
  let fd: number | null = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const close = () => {
    if (fd !== null) closeSync(fd)
    fd = null
  }
  t.teardown(close)
  const say = (what: string | Buffer) =>
    writeSync(fd ?? -1, typeof what === 'string' ? Buffer.from(what) : what)
  return { say, close }
}

t.test('each hears of its own log', async (t) => {
  const { path, follow, heard, append } = newFolder(t)
  const { say } = makeFifo(t, path)
  follow('stdout')
  say('e')
  say('o')
  await until('stdout is heard of', () => heard.stdout === 1)
  follow('stderr')
  say('e')
  await until('stderr is heard of', () => heard.stderr === 1)
  t.equal(heard.stdout, 1)
  append('stdout')
  say('e')
  await until('stderr is heard of again', () => heard.stderr === 2)
  t.equal(heard.stdout, 1, 'the file itself is not watched')
})

t.test('a short addition is told with its bytes', async (t) => {
  const { path, follow, heard, told } = newFolder(t)
  const { say } = makeFifo(t, path)
  for (const stream of STREAMS) follow(stream)
  say(addition('o', 0, 'zoe'))
  await until('it is heard', () => heard.stdout === 1)
  t.same(told, ['stdout 0 zoe'])
  t.equal(heard.stderr, 0, 'whatever letters it has')
  // More than 32 bits; and what was added to both before the first was heard.
  say(Buffer.concat([addition('e', 2 ** 40 + 258, 'x'.repeat(1024)), Buffer.from('oeo')]))
  await until('both are heard of', () => heard.stdout === 2 && heard.stderr === 2)
  t.equal(told[1], `stderr ${2 ** 40 + 258} ${'x'.repeat(1024)}`)
  t.equal(told.length, 2)
})

t.test('of one that cannot be one, that there may be more is heard', async (t) => {
  const { path, follow, heard, told } = newFolder(t)
  const { say } = makeFifo(t, path)
  for (const stream of STREAMS) follow(stream)
  say(addition('o', 0, 'shrt', 5))
  await until('it is heard', () => heard.stdout === 1)
  say(Buffer.from('\x01o'))
  await until('it is heard', () => heard.stdout === 2)
  say(Buffer.concat([addition('?', 0, 'who'), Buffer.from('e')]))
  await until('stderr is heard of', () => heard.stderr === 1)
  const full = 'o'.repeat(4096 - 10)
  say(addition('o', 0, full))
  await until('both are heard of', () => heard.stdout >= 3 && heard.stderr >= 2)
  t.same(told, [`stdout 0 ${full}`])
})

t.test('what was said while nobody followed is heard late', async (t) => {
  const { path, follow, heard } = newFolder(t)
  const { say } = makeFifo(t, path)
  say('o')
  const stop = follow('stdout')
  await until('it is heard', () => heard.stdout === 1)
  stop()
  say('oo')
  follow('stdout')
  await until('it is heard', () => heard.stdout === 2)
})

t.test('where it was full, both logs may have more', async (t) => {
  const { path, follow, heard } = newFolder(t)
  const { say } = makeFifo(t, path)
  say('o'.repeat(4096))
  for (const stream of STREAMS) follow(stream)
  await until('both are heard of', () => heard.stdout > 0 && heard.stderr > 0)
})

t.test('once the runner is gone, the files are watched', async (t) => {
  const { path, follow, heard, append } = newFolder(t)
  const { close } = makeFifo(t, path)
  for (const stream of STREAMS) follow(stream)
  close()
  await until('it is a reason to look', () => heard.stdout === 1 && heard.stderr === 1)
  append('stderr')
  await until('stderr is heard of', () => heard.stderr > 1)
  t.equal(heard.stdout, 1)
})

t.test('without a FIFO the files are watched', async (t) => {
  const cases: Record<string, (path: string) => void> = {
    'nothing there': () => undefined,
    'a file in its place': (path) => writeFileSync(path, 'o'),
    'a device in its place': (path) => symlinkSync('/dev/zero', path),
    'another FIFO in its place': (path) => {
      makeFifo(t, `${path}.another`)
      symlinkSync(`${path}.another`, path)
    },
  }
  for (const [name, make] of Object.entries(cases))
    await t.test(name, async (t) => {
      const { path, follow, heard, append } = newFolder(t)
      make(path)
      const stops = STREAMS.map(follow)
      append('stdout')
      await until('stdout is heard of', () => heard.stdout > 0)
      t.equal(heard.stderr, 0)
      for (const stop of stops) stop()
    })
})
