// The native runner, started directly instead of by the agent, with signals that are ignored at the start.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { getNativeFileName, NATIVE_PARTS } from '../../../../shared/native-file-names.ts'
import { waitUntil } from '../../../support/wait-until.ts'
import { hasNativeRunner } from './support.ts'

const skip = hasNativeRunner ? false : 'the native runner was not compiled: no C compiler'

const NATIVE_DIR = fileURLToPath(new URL('../../../../agent/exec/native/', import.meta.url))

/** @param wrapper command and arguments that execute the runner */
async function startRunner(t: Test, script: string, wrapper: string[] = []) {
  const records = t.testdir({ p_1: {}, '.exited': {} })
  const dir = `${records}/p_1`
  const runner =
    NATIVE_DIR + getNativeFileName(NATIVE_PARTS.runner, (name) => readFileSync(NATIVE_DIR + name))
  const [file = '', ...args] = [
    ...wrapper,
    runner,
    dir,
    dir,
    '65536',
    'detached',
    '/bin/sh',
    'sh',
    '-c',
    script,
  ]
  // stdio must be ignored: the process that stays behind would keep pipes open.
  await once(spawn(file, args, { stdio: 'ignore' }), 'exit')
  return {
    read: (name: string) => readFileSync(`${dir}/${name}`, 'utf8'),
    /** Waits for the runner's last write; before it, the runner could create files in a directory that tap removes. */
    waitForExit: () => waitUntil('the exit is recorded', () => existsSync(`${records}/.exited/p_1`)),
  }
}

t.test(
  'records the exit status although SIGCHLD and SIGTERM are ignored at the start',
  { skip },
  async (t) => {
    const script = 'echo output; (exit 5) & wait $!; exit $?'
    const { read, waitForExit } = await startRunner(t, script, ['env', '--ignore-signal=CHLD,TERM'])
    await waitForExit()
    t.match(read('exit'), /^5 - \d+ 7 0 complete/)
    t.equal(read('stdout'), 'output\n')
  },
)
