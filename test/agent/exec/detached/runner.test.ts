// The native runner by itself, as whoever starts the agent may have left it.
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { nativeRunFile } from '../../../../shared/native-spawn-file.ts'
import { until } from '../exec-app.ts'
import { HAS_NATIVE } from './support.ts'

const skip = HAS_NATIVE ? false : 'no C compiler here, so no native runner'

const NATIVE = fileURLToPath(new URL('../../../../agent/exec/native/', import.meta.url))

t.test('signals that are ignored when it starts cost it nothing', { skip }, async (t) => {
  const runner = NATIVE + nativeRunFile(readFileSync(`${NATIVE}run.c`))
  const folder = `${t.testdir({ records: {}, '.ended': {} })}/records/p_1`
  mkdirSync(folder)
  const command = [folder, '/', '65536', '/bin/sh', 'sh', '-c', 'echo said; (exit 5) & wait $!; exit $?']
  await promisify(execFile)('env', ['--ignore-signal=CHLD,TERM', runner, ...command])
  await until('it has ended', () => existsSync(`${folder}/exit`))
  t.match(readFileSync(`${folder}/exit`, 'utf8'), /^5 - \d+ 5 0 whole/)
  t.equal(readFileSync(`${folder}/stdout`, 'utf8'), 'said\n')
})
