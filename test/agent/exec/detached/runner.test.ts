// The native runner by itself, as whoever starts the agent may have left it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, existsSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { nativeRunFile } from '../../../../shared/native-spawn-file.ts'
import { until } from '../exec-app.ts'
import { addition, HAS_NATIVE } from './support.ts'

const skip = HAS_NATIVE ? false : 'no C compiler here, so no native runner'

const NATIVE = fileURLToPath(new URL('../../../../agent/exec/native/', import.meta.url))

/** Starts it with a folder of its own. */
async function startRunner(t: Test, script: string, before: string[] = []) {
  const records = t.testdir({ p_1: {}, '.ended': {} })
  const folder = `${records}/p_1`
  const runner = NATIVE + nativeRunFile(readFileSync(`${NATIVE}run.c`))
  const [file = '', ...rest] = [...before, runner, folder, folder, '65536', '/bin/sh', 'sh', '-c', script]
  // It stays behind with what it has open.
  await once(spawn(file, rest, { stdio: 'ignore' }), 'exit')
  return {
    folder,
    read: (name: string) => readFileSync(`${folder}/${name}`, 'utf8'),
    /** From then on it writes nothing: what is removed before would come back. */
    ended: () => until('it has ended', () => existsSync(`${records}/.ended/p_1`)),
  }
}

t.test('signals that are ignored when it starts cost it nothing', { skip }, async (t) => {
  const script = 'echo said; (exit 5) & wait $!; exit $?'
  const { read, ended } = await startRunner(t, script, ['env', '--ignore-signal=CHLD,TERM'])
  await ended()
  t.match(read('exit'), /^5 - \d+ 5 0 whole/)
  t.equal(read('stdout'), 'said\n')
})

t.test('a short addition is told with its bytes to who has heard all before', { skip }, async (t) => {
  // For 20 s at most, should nobody come.
  const wait = (name: string) =>
    `n=0; until [ -e ${name} ]; do n=$((n + 1)); [ $n -lt 1000 ] || exit 9; sleep 0.02; done`
  const { folder, read, ended } = await startRunner(
    t,
    [
      'printf one',
      wait('second'),
      'printf two >&2',
      wait('third'),
      'printf three',
      wait('fourth'),
      `printf %02000d 4`,
    ].join('; '),
  )
  const fifo = openSync(`${folder}/changes`, constants.O_RDONLY | constants.O_NONBLOCK)
  t.teardown(() => closeSync(fifo))
  const heard = async (wanted: Buffer) => {
    const said = Buffer.alloc(4096)
    let length = 0
    await until('it is said', () => {
      length += readIfAny(fifo, said, length)
      return length >= wanted.length
    })
    t.same(said.subarray(0, length), wanted)
  }
  await heard(addition('o', 0, 'one'))
  writeFileSync(`${folder}/second`, '')
  await until('it is written', () => read('stderr') === 'two')
  writeFileSync(`${folder}/third`, '')
  await until('it is written', () => read('stdout') === 'onethree')
  await heard(Buffer.concat([addition('e', 0, 'two'), Buffer.from('o')]))
  writeFileSync(`${folder}/fourth`, '')
  await heard(Buffer.from('o'))
  await ended()
  t.equal(read('stdout').length, 'onethree'.length + 2000)
})

function readIfAny(fd: number, into: Buffer, at: number): number {
  try {
    return readSync(fd, into, at, into.length - at, null)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EAGAIN') return 0
    throw error
  }
}
