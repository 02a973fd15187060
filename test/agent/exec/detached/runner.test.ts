// The native runner by itself, as whoever starts the agent may have left it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { getRunnerFileName } from '../../../../shared/native-file-names.ts'
import { waitUntil } from '../exec-app.ts'
import { HAS_NATIVE } from './support.ts'

const skip = HAS_NATIVE ? false : 'no C compiler here, so no native runner'

const NATIVE = fileURLToPath(new URL('../../../../agent/exec/native/', import.meta.url))

/** Starts it with a folder of its own. */
async function startRunner(t: Test, script: string, before: string[] = []) {
  const records = t.testdir({ p_1: {}, '.exited': {} })
  const folder = `${records}/p_1`
  const runner = NATIVE + getRunnerFileName(readFileSync(`${NATIVE}run.c`))
  const [file = '', ...rest] = [...before, runner, folder, folder, '65536', '/bin/sh', 'sh', '-c', script]
  // It stays behind with what it has open.
  await once(spawn(file, rest, { stdio: 'ignore' }), 'exit')
  return {
    folder,
    read: (name: string) => readFileSync(`${folder}/${name}`, 'utf8'),
    /** From then on it writes nothing: what is removed before would come back. */
    ended: () => waitUntil('it has ended', () => existsSync(`${records}/.exited/p_1`)),
  }
}

t.test('signals that are ignored when it starts cost it nothing', { skip }, async (t) => {
  const script = 'echo said; (exit 5) & wait $!; exit $?'
  const { read, ended } = await startRunner(t, script, ['env', '--ignore-signal=CHLD,TERM'])
  await ended()
  t.match(read('exit'), /^5 - \d+ 5 0 complete/)
  t.equal(read('stdout'), 'said\n')
})
