// Out of file descriptors: some commands fail with the operating system's error message, later ones work again.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'

const FIXTURE = fileURLToPath(new URL('fixtures/run-many-commands.ts', import.meta.url))

t.test('commands beyond the descriptor limit fail with "too many open files"', async (t) => {
  // Without the variables of tap, which would open files in the fixture.
  const env = { PATH: process.env.PATH }
  const script = 'ulimit -n 100; exec "$0" "$1"'
  const { stdout } = await promisify(execFile)('sh', ['-c', script, process.execPath, FIXTURE], { env })
  const { before, concurrent, after } = JSON.parse(stdout)
  t.same(before, { stdout: 'one\n' })
  const errors = concurrent.filter((result: object) => 'code' in result)
  t.ok(
    errors.length > 0 && errors.length < concurrent.length,
    `${errors.length} of ${concurrent.length} failed`,
  )
  for (const error of errors) t.match(error, { code: 'exec_failed', message: /too many open files/ })
  t.same(after, { stdout: 'one\n' })
})
